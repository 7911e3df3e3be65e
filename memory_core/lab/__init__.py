"""The lab: turn the knobs over whole conversations at once, and replay turns with other settings.

Read in this order: :mod:`.inputs` (a conversation with questions), :mod:`.axes` (which knobs are
turned), :mod:`.prepare` (everything that does not depend on a knob, made once), :mod:`.tutorial`
and :mod:`.layered` (planning, for every cell of the grid), :mod:`.sweep` (the two together),
:mod:`.table` (what a sweep yields), :mod:`.choosing` (which cell to take).
"""
