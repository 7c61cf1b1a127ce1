package stripe

import "testing"

// When all has arrived and was told nothing is due any more: a thousand idle sessions cost no processor.
func TestAnIdleTrunkIsQuiet(t *testing.T) {
	w := newWorld(t, 1, "pull", link{rate: 1e6, delay: 10 * ms, loss: 0.1}, link{rate: 1e6, delay: 30 * ms})
	s := &source{length: 100e3, grain: 1000, hold: true} // its end host writes nothing more then, and sends no FIN
	w.add(s)
	w.pump()
	for w.step() {
		if w.pump(); w.now.Unix() > 60 {
			t.Fatalf("after a minute there is still something to do\n%s", w)
		}
	}
	if s.got != s.length || !w.sender.Deadline().IsZero() || !w.receiver.Deadline().IsZero() {
		t.Errorf("deadlines %v and %v\n%s", w.sender.Deadline(), w.receiver.Deadline(), w)
	}
	if kept, _ := w.sender.Kept(s.session); kept.From != s.length {
		t.Errorf("%+v is kept of what was acknowledged\n%s", kept, w)
	}
}
