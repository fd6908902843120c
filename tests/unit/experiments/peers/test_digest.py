"""A peer's digest: it changes with the sources alone."""

from pathlib import Path

from experiments.peers import digest


def test_sources_count_and_pages_do_not(tmp_path: Path) -> None:
    """Another page or a built file keeps the digest. Another source, or its name, changes it."""
    (tmp_path / "build").mkdir()
    (tmp_path / "server.c").write_text("int main(void) { return 0; }\n")
    first = digest(tmp_path)
    (tmp_path / "README.md").write_text("A server.\n")
    (tmp_path / "build" / "server").write_text("built")
    assert digest(tmp_path) == first
    (tmp_path / "server.c").write_text("int main(void) { return 1; }\n")
    second = digest(tmp_path)
    (tmp_path / "server.c").rename(tmp_path / "other.c")
    assert len({first, second, digest(tmp_path)}) == 3
