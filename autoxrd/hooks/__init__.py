"""Outgoing webhooks, as Standard Webhooks 1.0 has them: signed, retried, and never to an address inside.

* :mod:`~autoxrd.hooks.addresses`: may this address be asked, and at which IP address?
* :mod:`~autoxrd.hooks.sending`: one attempt.
* :mod:`~autoxrd.hooks.dispatcher`: takes what is due from the outbox and sends it.

The outbox itself is :mod:`autoxrd.store.service.outbox`.
"""
