package boost

import "testing"

func TestTheBestOfManyFlowsIsOneThatTheEmulatorCarriedWell(t *testing.T) {
	ran := func(rate float64, blame string) *contender { return &contender{all: []outcome{{rate, blame}}} }
	if i := most([]*contender{ran(1, ""), ran(3, ""), ran(9, "late"), ran(2, "")}); i != 1 {
		t.Errorf("number %d", i)
	}
	if i := most([]*contender{ran(1, "late"), ran(3, "late")}); i != 1 {
		t.Errorf("where all were late: number %d", i)
	}
}

func TestBesideTheBestOfManyFlowsLossDecidesWhatIsWanted(t *testing.T) {
	if bestAim("0%") != ">= 0.98" || bestAim("0.01%") != ">= 1" {
		t.Errorf("%s, %s", bestAim("0%"), bestAim("0.01%"))
	}
}
