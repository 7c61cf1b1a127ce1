package emud

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/emu"
)

func TestWhatIsRefusedIsSaid(t *testing.T) {
	s := serve(t, square(), Shipped())
	ctx, nine, cause := t.Context(), 9, 0
	set := func(link int, p emu.Params) error { _, err := s.SetParams(ctx, link, [2]emu.Params{p, p}); return err }
	change := func(f Fault) error { _, err := s.Change(ctx, f); return err }
	get := func(router, handler string) error { _, err := s.Get(ctx, router, handler); return err }
	play := func(link int, node string, speed float64, text string) error {
		_, err := s.Replay(ctx, link, node, speed, strings.NewReader(text))
		return err
	}
	_, router := s.Router(ctx, "r9")
	_, handlers := s.Handlers(ctx, "r9")
	for _, c := range []struct {
		err     error
		missing bool
		want    string
	}{
		{set(9, emu.Params{}), true, "there are 4, numbered from 0"},
		{set(0, emu.Params{Loss: 2}), false, "loss 200: expected 0% to 100%"},
		{router, true, `no router "r9" inside the engine, which has 4`},
		{handlers, true, `no router "r9"`},
		{get("r9", "routes"), true, `no router "r9"`},
		{get("r0", "colour"), true, `router r0 has no handler "colour"; it has counters, `},
		{get("r0", "a/b\xff"), true, "a/b"},
		{get("r\xff", "routes"), true, "no router"},
		{s.Set(ctx, "r0", "drops", "0"), false, `handler "drops" can only be read`},
		{s.Set(ctx, "r0", "icmp-rate", "many"), false, "many"},
		{s.Set(ctx, "r0", "icmp-rate", "\xff"), false, "\ufffd"},
		{s.Swap(ctx, "r0", Swap{Program: "teleport"}), false, `unknown program "teleport"; this engine has forward, load, scaffold`},
		{s.Swap(ctx, "r0", Swap{Program: "forward", Parameters: map[string]string{"a": "b"}}), false, `unknown parameter "a"`},
		{s.Move(ctx, "r0", 99), false, "99"},
		{s.Move(ctx, "r0", -1), false, "-1"},
		{change(Fault{}), false, "a fault of nothing"},
		{change(Fault{Link: &nine}), true, "no link 9; there are 4"},
		{change(Fault{Link: &cause, Cause: "boredom"}), false, `cause "boredom"; expected one of fail, cut, unplug, partition`},
		{change(Fault{Link: &cause, Router: "r0"}), false, "expected one of the two"},
		{change(Fault{Router: "r0", Port: &nine}), true, "router r0 has no port 9; it has 2, numbered from 0"},
		{s.Capture(ctx, 9, io.Discard), true, "there are 4, numbered from 0"},
		{play(9, "r0", 1, "x"), true, "there are 4, numbered from 0"},
		{play(0, "r9", 1, "x"), true, `the link between r0 and r1 does not end at "r9"`},
		{play(0, "r0", 0, "x"), false, "speed 0"},
		{play(0, "r0", 1, "no recording"), false, "not a pcap or pcapng file"},
	} {
		var none *NotFoundError
		if c.err == nil || errors.As(c.err, &none) != c.missing || errors.Is(c.err, ErrGone) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v; want %q", c.err, c.want)
		}
	}
}

func TestWhereNoEngineAnswersThatIsSaid(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "engine.sock")
	if _, err := Dial(socket).Routers(t.Context()); !errors.Is(err, ErrGone) || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), socket) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := serve(t, square(), Shipped()).Routers(ctx); !errors.Is(err, ErrGone) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
