package member

import (
	"fmt"
	"testing"
)

func TestEachReasonIsSaidOnceInAnAbsence(t *testing.T) {
	var s Said
	lines := 0
	for i := range 100 {
		for _, reason := range []string{"unreachable", "of another network (two)", fmt.Sprintf("the key 5f0c9a1b22d3e4f6 was retired %dm%ds ago", i/60, i%60), fmt.Sprintf("dial tcp [::1]:%d: refused", 40000+i)} {
			if s.New(reason) {
				lines++
			}
		}
	}
	if lines != 4 {
		t.Errorf("%d lines of four reasons", lines)
	}
	if s.Forget(); !s.New("unreachable") {
		t.Error("the next absence is not told of")
	}
	for i := range 1000 {
		s.New(fmt.Sprintf("reason %c%c", 'a'+i%26, 'a'+i/26))
	}
	if len(s.kinds) > mostSaid {
		t.Errorf("%d are remembered", len(s.kinds))
	}
}
