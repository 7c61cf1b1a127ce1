package lab

import (
	"context"
	"errors"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/links"
	"scaffold.dev/scaffold/internal/lab/state"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestATimelineIsPlayedInALabThatStaysUp(t *testing.T) {
	l := upLab(t, "played")
	for range 2 {
		r, err := l.Play(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Steps) != 3 || len(r.Measures) != 2 || r.Measures[0].Output != "c1\n" || r.Measures[1].Exit != 3 {
			t.Errorf("%+v", r)
		}
		for _, verb := range []string{"kill s1/later", "start s1/forker"} { // as before the timeline
			a, err := file.ParseAction(verb)
			if err == nil {
				err = l.Do(t.Context(), a)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestALabIsNotTakenDownWhileItPlays(t *testing.T) {
	l := upLab(t, "playing")
	release, err := l.dir.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	var busy *state.BusyError
	if _, err := l.Play(t.Context()); !errors.As(err, &busy) {
		t.Errorf("a second owner: %v", err)
	}
	release()
	if err := Down(t.Context(), l.File.Name, l.opt); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Play(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("without the lab: %v", err)
	}
}

func TestACommandEndsWithItsContextAndSeesItsNode(t *testing.T) {
	l := upLab(t, "command")
	var out strings.Builder
	cmd, err := l.Command(t.Context(), "sh", "-c", "hostname; echo $SCAFFOLD_NODE:${node}:")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = &out
	if err := l.Start("c1", cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || out.String() != "c1\nc1::\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	if cmd, err = l.Command(ctx, "sleep", "1007"); err != nil {
		t.Fatal(err)
	}
	if err := l.Start("c1", cmd); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("it went on")
	}
	if _, err := l.Command(t.Context(), "no-such-program"); err == nil {
		t.Error("a program that is not there was found")
	}
}

func TestTrafficCountsBothDirectionsAndWhatACutLoses(t *testing.T) {
	nstest.Root(t)
	l := upLab(t, "traffic")
	at := func(a, b string) links.Traffic {
		all := l.Traffic()
		for _, link := range all {
			if link.Ends == [2]string{a, b} {
				return link
			}
		}
		t.Fatalf("no link %s - %s in %+v", a, b, all)
		return links.Traffic{}
	}
	ping := func(node, to string) error {
		_, err := l.Output(t.Context(), node, "ping", "-6", "-c", "1", "-W", "1", "-s", "1000", to)
		return err
	}
	for _, link := range []struct{ a, b, to string }{{"c1", "r1", "fe80::2%"}, {"s1", "a-node-with-a-long-name", "fe80::4%"}} {
		before := at(link.a, link.b)
		if err := ping(link.a, link.to+l.plan.Node(link.a).Ports[0].Dev); err != nil {
			t.Fatal(err)
		}
		after := at(link.a, link.b)
		for way := range 2 {
			if grown := after.Lines[way].Bytes - before.Lines[way].Bytes; after.State != "up" || grown < 1062 || grown > 2000 {
				t.Errorf("%s - %s, direction %d: %d bytes more: %+v", link.a, link.b, way, grown, after)
			}
		}
	}
	if err := l.Do(t.Context(), file.Action{Verb: "cut", Node: "c1", Peer: "r1"}); err != nil {
		t.Fatal(err)
	}
	if ping("c1", "fe80::2%to-r1") == nil {
		t.Error("a link that is cut carries packets")
	}
	if cut := at("c1", "r1"); cut.State != "cut" || cut.Lines[0].Lost == 0 {
		t.Errorf("after the cut: %+v", cut)
	}
}
