"""The lab: turn the knobs over whole conversations at once, and replay turns with other settings.

A sweep, in reading order: :mod:`.inputs` (a conversation with questions), :mod:`.axes` (which
knobs are turned), :mod:`.prepare` (what no knob changes, made once), :mod:`.tutorial`,
:mod:`.layered` and :mod:`.played` (who makes the prompts), :mod:`.sweep` (a cell for every pair of
values, run in a :mod:`.pool`), :mod:`.table` (what that yields), :mod:`.choosing` (which cell to
take), :mod:`.missed` (why a cell misses a question); then saving, comparing, exporting.

A comparison: :mod:`.comparison` (its values), :mod:`.script` (a conversation as turns that can be
said again), :mod:`.holding` and :mod:`.recalled` (what one exact prompt holds, and how a question
fares with it), :mod:`.planning` and :mod:`.playing` (a column from a session's record, or played
in an engine :mod:`.apart`), :mod:`.side_by_side` (all of them), :mod:`.comparison_folder`.
"""
