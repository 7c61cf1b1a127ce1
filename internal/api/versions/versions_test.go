package versions

import (
	"strings"
	"testing"
)

func TestTheHighestVersionOfBothIsTaken(t *testing.T) {
	for _, c := range []struct {
		ours, theirs Range
		want         uint32
	}{
		{Range{1, 2}, Range{1, 2}, 2},
		{Range{1, 2}, Told(0, 0), 1},
		{Range{1, 2}, Range{2, 5}, 2},
		{Range{2, 7}, Range{1, 3}, 3},
		{Range{3, 3}, Range{3, 3}, 3},
	} {
		got, err := c.ours.Agree("this controller", "host a", c.theirs)
		if err != nil || got != c.want {
			t.Errorf("%v with %v: %d, %v, want %d", c.ours, c.theirs, got, err, c.want)
		}
		back, err := c.theirs.Agree("this host", "the controller", c.ours)
		if err != nil || back != c.want {
			t.Errorf("%v with %v: %d, %v, want %d", c.theirs, c.ours, back, err, c.want)
		}
	}
}

func TestARefusalNamesWhoIsToBeUpgraded(t *testing.T) {
	for _, c := range []struct {
		ours, theirs Range
		want         string
	}{
		{Range{1, 2}, Range{3, 4}, "router r1 speaks version 3 to 4 of the agent protocol, this controller 1 to 2: upgrade this controller, or go back with router r1"},
		{Range{5, 6}, Range{3, 4}, "this controller 5 to 6: upgrade router r1, or go back with this controller"},
		{Range{3, 3}, Told(0, 0), "router r1 speaks version 1 of the agent protocol, this controller 3: upgrade router r1"},
		{Range{1, 2}, Range{9, 4}, "versions 9 to 4 of the agent protocol, which is no range"},
	} {
		_, err := c.ours.Agree("this controller", "router r1", c.theirs)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v with %v: %v, want %q", c.ours, c.theirs, err, c.want)
		}
	}
}

func TestWhatIsPretendedReplacesOneRange(t *testing.T) {
	ours := Range{1, 2}
	for text, want := range map[string]Range{
		"": ours, "agent=3-4": {3, 4}, "schema=9, agent=7": {7, 7}, "agent=x": ours, "agent": ours, "agents=3": ours,
	} {
		if got := parse(text, agent, ours); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestTheErrorSaysOnWhatTheyDoNotAgree(t *testing.T) {
	for want, theirs := range map[string]Range{
		"agent west speaks version 4 to 5 of the trunk protocol, this agent 1 to 2: upgrade this agent, or go back with agent west": {4, 5},
		"agent west says that it speaks versions 3 to 1 of the trunk protocol, which is no range":                                   {3, 1},
	} {
		if _, err := (Range{1, 2}).AgreeOn("the trunk protocol", "this agent", "agent west", theirs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", theirs, err, want)
		}
	}
}
