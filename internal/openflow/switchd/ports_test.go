package switchd

import "testing"

func TestOldOpenVSwitchesAnswerNoSolicitation(t *testing.T) {
	for version, want := range map[string]bool{"3.1.0": true, "2.11.0": true, "2.10.7": false, "2.9": false, "1.11.0": false, "10.0.1": true, "": false, "unknown": false} {
		if answersSolicited(version) != want {
			t.Errorf("Open vSwitch %q: %v", version, !want)
		}
	}
}
