package processes

import "testing"

func TestALateEndSaysNothingOfWhatWasStartedSince(t *testing.T) {
	var e exits
	first := e.begin("sw/ovsdb")
	second := e.begin("sw/ovsdb")
	first("signal: killed")
	if how, ended := e.of("sw/ovsdb"); ended {
		t.Errorf("what runs has ended, says the end of the one before: %s", how)
	}
	second("exit status 1")
	if how, ended := e.of("sw/ovsdb"); !ended || how != "exit status 1" {
		t.Errorf("ended: %v, %q", ended, how)
	}
}
