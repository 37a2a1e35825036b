"""What TensorBoard's own reader finds in a folder of events: a line for each tag."""
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
for tag in sorted(events.Tags()["scalars"]):
    found = events.Scalars(tag)
    print(tag, len(found), found[0].step, found[-1].step, f"{found[-1].value:.5g}")
