"""A job that starts from another's model: all together first, then the planner, and nothing where that is refused."""

from __future__ import annotations

from autoxrd.domain.action import ActionKind
from autoxrd.domain.decision import Decision
from autoxrd.domain.state import FitState
from autoxrd.gates.acceptance import judge
from autoxrd.gates.policy import load_policy
from autoxrd.gates.preflight import known_parameters as known
from autoxrd.gates.preflight import preflight
from autoxrd.planners.continuing import Continuing
from autoxrd.planners.protocol import AttemptView, Finish, GraphView, JobContext, Proposal
from autoxrd.planners.rules.writing import joint_action
from tests.gates.factory import action, state

CONTEXT: JobContext = None  # type: ignore[assignment]  # the stub below does not look at it
POLICY = load_policy("default")
ROOT, NEXT = "root", "next"


class Inner:
    """Answers with what it is given and keeps what it was shown."""

    name = "inner"
    version = "7"

    def __init__(self, *answers: Proposal | Finish) -> None:
        self.answers = list(answers)
        self.seen: list[GraphView] = []

    def propose(self, view: GraphView, context: JobContext) -> Proposal | Finish:
        self.seen.append(view)
        return self.answers.pop(0)


def begun() -> FitState:
    """A root as a start makes it: parameters declared free, nothing refined."""
    plain = state(rwp=0.20, n_free=0, max_correlation=None, pair=None, shift=None, released=("phase.*.scale",))
    return plain.model_copy(update={"convergence": plain.convergence.model_copy(update={"max_shift_over_esd": None})})


def decision(*reasons: str) -> Decision:
    return Decision(
        accepted=not reasons, numerically_better=None, mechanism_supported=None, admissible=None, reasons=reasons,
        policy_name="default", policy_hash="0",
    )  # fmt: skip


def view(*attempts: AttemptView) -> GraphView:
    return GraphView(ROOT, {ROOT: begun(), NEXT: state()}, list(attempts))


def opening(*reasons: str) -> AttemptView:
    return AttemptView(1, ROOT, joint_action(begun(), ROOT, begun().released), decision(*reasons), NEXT)


def test_the_first_step_is_the_joint_cycle_of_all_that_is_free() -> None:
    inner = Inner()
    answer = Continuing(inner).propose(view(), CONTEXT)
    assert isinstance(answer, Proposal)
    assert answer.action.kind is ActionKind.JOINT
    assert answer.action.parameters == ("phase.*.scale",)
    assert not inner.seen
    assert (Continuing(inner).name, Continuing(inner).version) == ("inner", "7")


def test_the_gates_take_it_where_it_fits_and_refuse_it_where_it_does_not() -> None:
    root = begun()
    opened = joint_action(root, ROOT, root.released)
    checks = preflight(opened, root, ROOT, policy=POLICY, known_parameters=known(root))
    assert all(check.passed for check in checks), [check.text for check in checks if not check.passed]
    good = state(rwp=0.10, n_free=30, shift=0.001, released=root.released)
    assert judge(opened, root, good, preflight=checks, policy=POLICY).accepted
    moving = state(rwp=0.10, n_free=30, shift=0.5, released=root.released)
    assert not judge(opened, root, moving, preflight=checks, policy=POLICY).accepted
    worse = state(rwp=0.21, n_free=30, shift=0.001, released=root.released)
    assert not judge(opened, root, worse, preflight=checks, policy=POLICY).accepted


def test_where_it_is_refused_the_job_ends_and_says_so() -> None:
    answer = Continuing(Inner()).propose(view(opening("unexplained_peaks_increased")), CONTEXT)
    assert isinstance(answer, Finish)
    assert answer.state == ROOT
    assert [code for code, _ in answer.objections] == ["start_not_accepted"]
    assert "unexplained_peaks_increased" in answer.objections[0][1]


def test_the_planner_goes_on_from_there_as_from_a_root() -> None:
    inner = Inner(Proposal(action(parent=NEXT)))
    answer = Continuing(inner).propose(view(opening()), CONTEXT)
    assert isinstance(answer, Proposal)
    assert answer.action.kind is ActionKind.ZERO
    assert inner.seen[0].root == NEXT
    assert inner.seen[0].path(NEXT) == []
    assert not inner.seen[0].attempts


def test_a_joint_cycle_is_not_repeated_where_nothing_came_after_the_first() -> None:
    closing = Proposal(joint_action(state(), NEXT, ("phase.*.scale",)))
    inner = Inner(closing, Finish(NEXT, "Nothing is left."))
    answer = Continuing(inner).propose(view(opening()), CONTEXT)
    assert isinstance(answer, Finish)
    assert [seen.root for seen in inner.seen] == [NEXT, ROOT]


class Farsighted(Inner):
    """Foresees the first of its answers and keeps it."""

    def foresee(self, view: GraphView, context: JobContext) -> Proposal | Finish:
        self.seen.append(view)
        return self.answers[0]


def test_what_the_planner_foresees_is_foreseen_from_where_it_goes_on() -> None:
    answer = Proposal(action(parent=NEXT))
    inner = Farsighted(answer)
    assert Continuing(inner).foresee(view(opening()), CONTEXT) == answer
    assert inner.seen[0].root == NEXT
    refused = Continuing(inner).foresee(view(opening("rwp_worse")), CONTEXT)
    assert isinstance(refused, Finish)
    assert len(inner.answers) == 1


def test_a_planner_that_foresees_nothing_is_not_asked() -> None:
    inner = Inner(Finish(NEXT, "the end"))
    assert Continuing(inner).foresee(view(opening()), CONTEXT) is None
    assert not inner.seen
