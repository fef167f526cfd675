"""Mistakes about files: whose they are, what they are written through, and what is believed of them."""

from benchmarks.mutants.model import Mutant, Patch

__all__ = ["FILES", "GUARANTEE"]

_OURS = "tests/_util/test_ownership.py"
_LEDGER = "tests/ledger/test_ownership.py"
_EXTEND = "tests/cli/test_extend.py"
_LOADED = "tests/planning/test_guarantee.py"

# Files and folders that are not ours.
FILES = (
    Mutant(
        "the owner of a file is not looked at",
        (Patch("_util/ownership.py", "found.st_uid != os.geteuid()", "found.st_uid is None"),),
        (
            f"{_OURS}::TestStaging::test_of_somebody_else",
            f"{_LEDGER}::TestKey::test_of_somebody_else",
        ),
    ),
    Mutant(
        "a folder that others may look into is used",
        (Patch("_util/ownership.py", "found.st_mode & 0o077", "found.st_mode & 0o002"),),
        (f"{_OURS}::TestStaging::test_a_folder_that_others_may_enter",),
    ),
    Mutant(
        "the staging folder is opened without a look at it",
        (
            Patch(
                "_util/ownership.py",
                "if reason is not None:\n            os.close(handle)",
                "if not handle:\n            os.close(handle)",
            ),
        ),
        (f"{_OURS}::TestStaging::test_a_planted_folder_that_others_may_enter_gets_no_secret",),
    ),
    Mutant(
        "links are followed where a secret is kept",
        (
            Patch(
                "_util/ownership.py",
                "_NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC",
                "_NO_FOLLOW = os.O_CLOEXEC",
            ),
        ),
        (f"{_OURS}::TestStaging::test_links_inside",),
    ),
    Mutant(
        "files are made in the place of others",
        (
            Patch(
                "_util/atomic.py",
                "os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC",
                "os.O_RDWR | os.O_CREAT | os.O_CLOEXEC",
            ),
        ),
        (f"{_OURS}::TestPrivateFiles::test_nothing_is_made_where_something_is",),
    ),
    Mutant(
        "a temporary file that was exchanged is put in place",
        (
            Patch(
                "_util/atomic.py",
                "if not os.path.samestat(os.lstat(part), os.fstat(file.fileno())):",
                "if not os.path.lexists(part):",
            ),
        ),
        (f"{_OURS}::TestLinks::test_a_part_that_is_exchanged_for_a_link_is_not_written_through",),
    ),
    Mutant(
        "a temporary folder is open to others",
        (Patch("_util/atomic.py", "os.mkdir(folder, 0o700)", "os.mkdir(folder)"),),
        (f"{_OURS}::TestPrivateFiles::test_modes_whatever_the_mask_allows",),
    ),
    Mutant(
        "a folder that took the place of ours is written to",
        (
            Patch(
                "workflow/resume.py", "if not self._place.in_place:", "if not self.folder.exists():"
            ),
        ),
        (f"{_OURS}::TestStaging::test_a_folder_that_takes_its_place_gets_nothing",),
    ),
    Mutant(
        "a ledger is made as readable as the mask allows",
        (Patch("_util/ownership.py", "_CREATE, 0o600, dir_fd", "_CREATE, 0o666, dir_fd"),),
        (f"{_LEDGER}::test_both_are_made_for_the_owner_alone_whatever_the_mask_allows",),
    ),
    Mutant(
        "a journal of somebody else is played back",
        (Patch("ledger/sqlite.py", '("", "-journal", "-wal", "-shm")', '("",)'),),
        (f"{_LEDGER}::TestFile::test_a_journal_that_others_may_write_to",),
    ),
)

# What a bundle says of itself.
GUARANTEE = (
    Mutant(
        "an edited bundle decides the protection of an extension",
        (
            Patch(
                "workflow/extension.py",
                "    if protection is not kept:",
                "    if protection is None:",
            ),
        ),
        (f"{_EXTEND}::test_and_to_be_that_of_the_earlier_release",),
    ),
    Mutant(
        "a bundle that the ledger does not know is extended",
        (
            Patch(
                "workflow/extension.py",
                "if known is None or known.digest is None:",
                "if known is None or known.digest is None:\n        return\n    if known is None:",
            ),
        ),
        (f"{_EXTEND}::test_a_bundle_that_the_ledger_does_not_know",),
    ),
    Mutant(
        "a loaded release states its epsilon unchecked",
        (
            Patch(
                "planning/guarantee.py",
                "    _check_noise(plan)\n    _check_epsilon(plan)\n",
                "    _check_noise(plan)\n",
            ),
        ),
        (f"{_LOADED}::test_the_edit_of_the_finding",),
    ),
    Mutant(
        "a loaded release states its mu unchecked",
        (
            Patch(
                "planning/guarantee.py",
                "    _check_noise(plan)\n    _check_epsilon(plan)\n",
                "    _check_epsilon(plan)\n",
            ),
        ),
        (f"{_LOADED}::test_a_factor_of_two_in_the_noise_is_seen",),
    ),
    Mutant(
        "a loaded release states its protection unchecked",
        (
            Patch(
                "released/release_file.py",
                'if manifest["noisy"] != noisy_blocks(plan):',
                'if not manifest["noisy"]:',
            ),
        ),
        (f"{_LOADED}::test_a_protection_that_only_the_plan_claims",),
    ),
    Mutant(
        "a private covariance is released exactly if the plan says so",
        (
            Patch(
                "wall/mechanism.py",
                "plan.protection.features_private and not plan.covariance_noisy:",
                "not plan.width:",
            ),
        ),
        (f"{_LOADED}::test_a_private_covariance_without_noise_is_never_released",),
    ),
)
