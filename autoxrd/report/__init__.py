"""Reports rendered from the graph: JSON first, then HTML, CIF, tables and a bundle."""
