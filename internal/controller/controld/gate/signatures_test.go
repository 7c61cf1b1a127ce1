package gate

import (
	"fmt"
	"testing"
	"time"
)

// A host whose clock was set back joins again at once, and nobody uses a request of its twice.
func TestAClockThatIsSetBackKeepsNobodyOut(t *testing.T) {
	var s Signatures
	now := time.Now()
	s.Note([]byte("first"), now.Unix(), now)
	back := now.Add(-4 * time.Minute).Unix()
	if s.Used([]byte("second"), back) {
		t.Error("a request of a clock that was set back is refused")
	}
	s.Note([]byte("second"), back, now)
	for _, replay := range []string{"first", "second"} {
		if !s.Used([]byte(replay), now.Unix()) {
			t.Errorf("the %s request is taken again", replay)
		}
	}
	s.Note([]byte("third"), now.Unix(), now.Add(forgetAfter+time.Second))
	if len(s.taken) != 1 {
		t.Errorf("%d requests are remembered that are too old by now", len(s.taken)-1)
	}
}

// A member that joins without end costs bounded memory, and gains no replay.
func TestRequestsThatAreRememberedAreBounded(t *testing.T) {
	var s Signatures
	now := time.Now()
	for i := range 3 * maxSignatures {
		key := []byte(fmt.Sprint(i))
		s.Note(key, now.Unix()+int64(i), now)
		if len(s.taken) > maxSignatures {
			t.Fatalf("%d are remembered", len(s.taken))
		}
		if i > 0 && !s.Used([]byte(fmt.Sprint(i-1)), now.Unix()+int64(i-1)) {
			t.Fatalf("request %d may be used again", i-1)
		}
	}
}
