package bench

import (
	"context"
	"errors"
	"strings"
	"testing"

	"scaffold.dev/scaffold/bench/checked"
)

const told = `{"kind":"listening","at":5,"node":"s1"}
{"kind":"began","at":10,"node":"c1","flow":7,"proto":"tcp","client":true}
{"kind":"began","at":11,"node":"s1","flow":7,"proto":"tcp"}
{"kind":"gap","at":40,"from":20,"node":"c1","flow":7,"proto":"tcp","client":true,"last":40,"received":5}
{"kind":"progress","at":41,"node":"c1","flow":7,"proto":"tcp","client":true,"last":39,"received":5}
{"kind":"refused","at":42,"node":"c2","flow":8,"client":true,"err":"no"}
{"kind":"wrong","at":43,"node":"s1","flow":7,"proto":"tcp","err":"byte 3"}
`

func TestALedgerPutsBothEndsTogether(t *testing.T) {
	l := NewLedger()
	if err := l.Read(strings.NewReader(told)); err != nil {
		t.Fatal(err)
	}
	flows := l.Flows((*Flow).Live)
	if len(flows) != 1 {
		t.Fatalf("%d flows", len(flows))
	}
	f := flows[0]
	if c := f.Client(); c == nil || c.Last != 40 || len(c.Gaps) != 1 || c.Gaps[0] != (Span{20, 40}) || c.Since != 10 {
		t.Errorf("client %+v", c)
	}
	if s := f.Server(); s == nil || s.Node != "s1" || s.Since != 11 {
		t.Errorf("server %+v", s)
	}
	if w := l.Wrong(); len(w) != 1 || len(l.Wrong()) != 0 {
		t.Errorf("wrong: %v", w)
	}
	if r := l.Refused(); len(r) != 1 || r[0].Node != "c2" {
		t.Errorf("refused: %v", r)
	}
	if l.listening("s1", 4) != nil || l.listening("s1", 6) == nil {
		t.Error("when a server began to listen is not known")
	}
	if err := l.Read(strings.NewReader("no note\n")); err == nil {
		t.Error("what is no note was taken for one")
	}
}

func TestAwaitSeesEachNote(t *testing.T) {
	l := NewLedger()
	go l.Read(strings.NewReader(told))
	err := l.Await(t.Context(), func() error {
		if len(l.Flows((*Flow).Live)) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Await(ctx, func() error { return errors.New("never") }); err == nil || !strings.Contains(err.Error(), "never") {
		t.Errorf("%v", err)
	}
}

// A stream may come back to a server that it was on before: that is a new end.
func TestAStreamThatComesBackBeginsAnew(t *testing.T) {
	l := NewLedger()
	for i, node := range []string{"s1", "s2", "s1"} {
		l.add(checked.Note{Kind: checked.Began, At: int64(10 * i), Node: node, Flow: 7, Proto: "tcp"})
	}
	if s := l.Flows(func(*Flow) bool { return true })[0].Server(); s.Node != "s1" || s.Since != 20 {
		t.Errorf("%+v", s)
	}
}

func TestCountersAreFoundByName(t *testing.T) {
	text := "Ip: A B\nIp: 1 2\nTcp: Other RetransSegs\nTcp: 5 9\n"
	if n, err := counter(text, "Tcp", "RetransSegs"); n != 9 || err != nil {
		t.Error(n, err)
	}
	if _, err := counter(text, "Tcp", "Nothing"); err == nil {
		t.Error("a counter that is not there was found")
	}
}
