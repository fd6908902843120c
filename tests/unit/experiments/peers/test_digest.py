"""Digest of a peer's sources."""

from pathlib import Path

from experiments.peers import digest


def test_sources_count_and_pages_do_not(tmp_path: Path) -> None:
    """A page or a built file does not change the digest. The content and the name of a source do, and a new source."""
    (tmp_path / "server.c").write_text("int main(void) { return 0; }\n")
    first = digest(tmp_path)
    (tmp_path / "README.md").write_text("A server.\n")
    for name in ("build", "target"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "server").write_text("built")
    assert digest(tmp_path) == first
    (tmp_path / "server.c").write_text("int main(void) { return 1; }\n")
    second = digest(tmp_path)
    (tmp_path / "server.c").rename(tmp_path / "other.c")
    third = digest(tmp_path)
    (tmp_path / "server.h").write_text("")
    assert len({first, second, third, digest(tmp_path)}) == 4
