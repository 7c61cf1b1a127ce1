package labapi_test

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/internal/lab/labapi"
	labv1 "scaffold.dev/scaffold/internal/lab/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

var number = regexp.MustCompile(`[0-9][-+.0-9e]*`)

// shape is a message without its numbers, which change from one look to the next.
func shape(t *testing.T, m proto.Message) string {
	t.Helper()
	text, err := protojson.MarshalOptions{EmitDefaultValues: true, Multiline: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return number.ReplaceAllString(strings.Join(strings.Fields(string(text)), " "), "0")
}

func TestWhatCommandsPrintIsWhatTheSchemaSays(t *testing.T) {
	r, name := up(t, network, "same")
	labs, err := r.lab.ListLabs(t.Context(), &labv1.ListLabsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	links, err := r.lab.ListLinks(t.Context(), &labv1.ListLinksRequest{Lab: name})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field      string
		args       []string
		want, said proto.Message
	}{
		{"labs", []string{"lab", "status", "-o", "json"}, labs, &labv1.ListLabsResponse{}},
		{"links", []string{"lab", "link", "--lab", name, "-o", "json"}, links, &labv1.ListLinksResponse{}},
	} {
		said, err := exec.Command("/proc/self/exe", c.args...).Output()
		if err == nil {
			err = protojson.Unmarshal(fmt.Appendf(nil, "{%q: %s}", c.field, said), c.said)
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, said)
		}
		if got, want := shape(t, c.said), shape(t, c.want); got != want {
			t.Errorf("%v printed\n%s\nthe API gave\n%s", c.args, got, want)
		}
	}
}

// reached goes through a stream until somebody is told of text.
func reached[M any, P interface {
	*M
	GetProgress() string
}](t *testing.T, stream *connect.ServerStreamForClient[M], err error, text string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for stream.Receive() {
		if strings.Contains(P(stream.Msg()).GetProgress(), text) {
			return
		}
	}
	t.Fatalf("it ended before %q: %v", text, stream.Err())
}

func TestALabWhoseCallerGoesAwayIsUndone(t *testing.T) {
	nstest.Root(t)
	r := serve(t, labapi.Config{})
	for call, begin := range map[string]func(ctx context.Context, q *labv1.LabFile){
		"up": func(ctx context.Context, q *labv1.LabFile) {
			events, err := r.lab.Up(ctx, q)
			reached(t, events, err, ": daemons")
		},
		"run": func(ctx context.Context, q *labv1.LabFile) {
			events, err := r.lab.Run(ctx, q)
			reached(t, events, err, ": daemons")
		},
	} {
		name := nstest.LabNamed("away_" + call) // the first is let go of a moment after the last of it has gone
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		begin(ctx, &labv1.LabFile{Source: network, Name: name})
		if len(left(name)) == 0 {
			t.Errorf("%s: nothing was made", call)
		}
		leave()
		nstest.Wait(t, "ls /run/netns", func() error {
			if all := left(name); len(all) > 0 {
				return fmt.Errorf("%s: left %v", call, all)
			}
			return nil
		})
	}
}

// begun is a command of which the pid has been told.
func begun(ctx context.Context, r *rig, q *labv1.ExecRequest) (*connect.ServerStreamForClient[labv1.ProcessEvent], int) {
	r.Helper()
	events, err := r.lab.Start(ctx, q)
	if err != nil {
		r.Fatal(err)
	}
	if !events.Receive() || events.Msg().GetPid() == 0 {
		r.Fatalf("no pid: %v, %v", events.Msg(), events.Err())
	}
	return events, int(events.Msg().GetPid())
}

func TestACommandWhoseCallerGoesAwayIsKilled(t *testing.T) {
	r, name := up(t, network, "command")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	_, pid := begun(ctx, r, &labv1.ExecRequest{Lab: name, Node: "c1", Argv: []string{"sh", "-c", "sleep 1008 & sleep 1009"}})
	leave()
	nstest.Wait(t, fmt.Sprintf("ps -g %d", pid), func() error {
		if syscall.Kill(-pid, 0) != syscall.ESRCH {
			return fmt.Errorf("process group %d runs", pid)
		}
		return nil
	})
}

func TestAStreamTellsThePIDThenWhatIsPrintedThenTheEnd(t *testing.T) {
	r, name := up(t, network, "stream")
	events, pid := begun(t.Context(), r, &labv1.ExecRequest{
		Lab: name, Node: "c1", Argv: []string{"sh", "-c", "cat; echo $A >&2; exec sleep 1010"}, Stdin: "in", Env: map[string]string{"A": "b"},
	})
	out, errs := "", ""
	for range 2 {
		events.Receive()
		out, errs = out+events.Msg().GetStdout(), errs+events.Msg().GetStderr()
	}
	if out != "in" || errs != "b\n" {
		t.Errorf("printed %q, %q", out, errs)
	}
	sent, err := r.lab.Signal(t.Context(), &labv1.SignalRequest{Lab: name, Node: "c1", Pid: int32(pid), Signal: "term"})
	if err != nil || sent.Pid != int32(pid) || sent.Signal != "SIGTERM" {
		t.Errorf("%v, %v", sent, err)
	}
	if end := received(t, events, nil); len(end) != 1 || end[0].GetEnded().GetExit() != 128+15 || end[0].GetEnded().GetTookS() <= 0 {
		t.Errorf("%v", end)
	}
}

func TestTooMuchOutputEndsTheCommand(t *testing.T) {
	r, name := up(t, network, "much")
	r.refuse(question{"Exec", fmt.Sprintf(`{"lab": %q, "node": "c1", "argv": ["cat", "/dev/zero"]}`, name), 429, "was killed"})
}

func TestATimelineRunsInALabThatStays(t *testing.T) {
	r, name := up(t, network, "play")
	events, err := r.lab.Play(t.Context(), &labv1.LabName{Lab: name})
	all := received(t, events, err)
	if ran := all[len(all)-1].GetRan(); ran == nil || ran.Failed || ran.Result.Steps[0].GetOutput() != "hello\n" {
		t.Errorf("%v", all)
	}
	if s, err := r.lab.GetStatus(t.Context(), &labv1.LabName{Lab: name}); err != nil || s.Phase != "up" {
		t.Errorf("afterwards it is %v, %v", s, err)
	}
}

func TestALinkChangesInOneDirection(t *testing.T) {
	r, name := up(t, network, "link")
	links, err := r.lab.SetLinks(t.Context(), &labv1.SetLinksRequest{
		Lab: name, A: "r1", B: "s1", OneWay: true, Set: map[string]string{"delay": "20ms", "seed": "9", "unordered": "true", "jitter": "1ms"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const ms = int64(time.Millisecond)
	if there, back := links.Links[0].Lines[0].Params, links.Links[0].Lines[1].Params; there.GetDelay() != ms || back.GetDelay() != 20*ms || !back.GetUnordered() || back.GetJitter() != ms || back.Loss != nil {
		t.Errorf("%v, %v", there, back)
	}
	var t1, t2 *labv1.Traffic
	for _, to := range []**labv1.Traffic{&t1, &t2} {
		if *to, err = r.lab.GetTraffic(t.Context(), &labv1.LabName{Lab: name}); err != nil {
			t.Fatal(err)
		}
	}
	if t2.AtS <= t1.AtS || len(t1.Links) != 2 || strings.Join(t1.Links[0].Ends, " ") != "c1 r1" || t1.Links[1].Lines[0].Packets == 0 {
		t.Errorf("%v, %v", t1, t2)
	}
}

func TestLabsOfAServerGoWithItWhereItIsTold(t *testing.T) {
	r, name := up(t, network, "finish")
	if err := r.api.Finish(false); err != nil || len(left(name)) == 0 {
		t.Errorf("%v; left %v", err, left(name))
	}
	if err := r.api.Finish(true); err != nil || len(left(name)) > 0 {
		t.Errorf("%v; left %v", err, left(name))
	}
}
