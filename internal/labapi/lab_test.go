package labapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/labapi"
	"scaffold.dev/scaffold/internal/nstest"
)

// shape is a JSON value without its numbers, which change from one look to the next.
func shape(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return flat(v)
}

func flat(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = flat(v[k])
		}
	case []any:
		for i := range v {
			v[i] = flat(v[i])
		}
	case float64:
		return 0
	}
	return v
}

func TestTheAPIAndTheCommandsGiveTheSameJSON(t *testing.T) {
	r, name := up(t, "same")
	for path, args := range map[string][]string{
		"/v1/labs":                    {"lab", "status", "-o", "json"},
		"/v1/labs/" + name + "/links": {"lab", "link", "--lab", name, "-o", "json"},
	} {
		said, err := exec.Command("/proc/self/exe", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		_, text := r.ask("GET", path, nil)
		if !reflect.DeepEqual(shape(t, said), shape(t, text)) {
			t.Errorf("%v printed\n%s\n%s gave\n%s", args, said, path, text)
		}
	}
}

func TestALabWhoseCallerGoesAwayIsUndone(t *testing.T) {
	nstest.Root(t)
	r := serve(t, labapi.Config{})
	for _, path := range []string{"/v1/labs", "/v1/runs"} {
		name := unique("away_" + filepath.Base(path)) // the first is let go of a moment after the last of it has gone
		next, leave := r.lines("POST", path, labapi.FileRequest{Source: network, Name: name})
		for line := next(); !strings.Contains(line, ": daemons"); line = next() {
			if line == "" {
				t.Fatalf("%s: ended before it was up", path)
			}
		}
		if len(left(name)) == 0 {
			t.Errorf("%s: nothing was made", path)
		}
		leave()
		nstest.Wait(t, "ls /run/netns", func() error {
			if all := left(name); len(all) > 0 {
				return fmt.Errorf("%s: left %v", path, all)
			}
			return nil
		})
	}
}

func TestACommandWhoseCallerGoesAwayIsKilled(t *testing.T) {
	r, name := up(t, "command")
	exec := "/v1/labs/" + name + "/nodes/c1/exec"
	next, leave := r.lines("POST", exec, labapi.ExecRequest{Argv: []string{"sh", "-c", "sleep 1008 & sleep 1009"}, Stream: true})
	var began labapi.Began
	if err := json.Unmarshal([]byte(next()), &began); err != nil || began.PID == 0 {
		t.Fatalf("%v, %+v", err, began)
	}
	leave()
	nstest.Wait(t, fmt.Sprintf("ps -g %d", began.PID), func() error {
		if syscall.Kill(-began.PID, 0) != syscall.ESRCH {
			return fmt.Errorf("process group %d runs", began.PID)
		}
		return nil
	})
}

func TestAStreamTellsThePIDThenWhatIsPrintedThenTheEnd(t *testing.T) {
	r, name := up(t, "stream")
	node := "/v1/labs/" + name + "/nodes/c1/"
	next, _ := r.lines("POST", node+"exec", labapi.ExecRequest{Argv: []string{"sh", "-c", "cat; echo $A >&2; exec sleep 1010"}, Stdin: "in", Env: map[string]string{"A": "b"}, Stream: true})
	var began labapi.Began
	if err := json.Unmarshal([]byte(next()), &began); err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{next(): true, next(): true}
	if !said[`{"stdout":"in"}`] || !said[`{"stderr":"b\n"}`] {
		t.Errorf("printed: %v", said)
	}
	var sent labapi.Signalled
	if r.get("POST", node+"signal", labapi.SignalRequest{PID: began.PID, Signal: "term"}, &sent); sent != (labapi.Signalled{PID: began.PID, Signal: "SIGTERM"}) {
		t.Errorf("%+v", sent)
	}
	var exit labapi.Exit
	if err := json.Unmarshal([]byte(next()), &exit); err != nil || exit.Exit != 128+15 || exit.Took <= 0 {
		t.Errorf("%v, %+v", err, exit)
	}
	if line := next(); line != "" {
		t.Errorf("after the end: %s", line)
	}
}

func TestTooMuchOutputEndsTheCommand(t *testing.T) {
	r, name := up(t, "much")
	status, text := r.ask("POST", "/v1/labs/"+name+"/nodes/c1/exec", labapi.ExecRequest{Argv: []string{"cat", "/dev/zero"}})
	if status != 507 || !bytes.Contains(text, []byte("was killed")) {
		t.Errorf("%d %.200s", status, text)
	}
}

func TestATimelineRunsInALabThatStays(t *testing.T) {
	r, name := up(t, "play")
	_, text := r.ask("POST", "/v1/labs/"+name+"/run", nil)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var ran labapi.Ran
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &ran); err != nil || ran.Failed || ran.Result.Steps[0].Output != "hello\n" {
		t.Errorf("%v\n%s", err, text)
	}
	var s lab.Status
	if r.get("GET", "/v1/labs/"+name, nil, &s); s.Phase != "up" {
		t.Errorf("afterwards it is %s", s.Phase)
	}
}

func TestALinkChangesInOneDirection(t *testing.T) {
	r, name := up(t, "link")
	var links lab.EmulatedLinks
	r.get("PUT", "/v1/labs/"+name+"/links/r1/s1", `{"set": {"delay": "20ms", "seed": 9, "unordered": true, "jitter": "1ms"}, "one_way": true}`, &links)
	if p := links[0].Lines; p[0].Params.Delay != time.Millisecond || p[1].Params.Delay != 20*time.Millisecond || !p[1].Params.Unordered || p[1].Params.Jitter != time.Millisecond {
		t.Errorf("%+v", p)
	}
	var t1, t2 labapi.Traffic
	r.get("GET", "/v1/labs/"+name+"/traffic", nil, &t1)
	r.get("GET", "/v1/labs/"+name+"/traffic", nil, &t2)
	if t2.At <= t1.At || len(t1.Links) != 2 || t1.Links[0].Ends != [2]string{"c1", "r1"} || t1.Links[1].Lines[0].Packets == 0 {
		t.Errorf("%+v, %+v", t1, t2)
	}
}

func TestLabsOfAServerGoWithItWhereItIsTold(t *testing.T) {
	r, name := up(t, "finish")
	if err := r.api.Finish(false); err != nil || len(left(name)) == 0 {
		t.Errorf("%v; left %v", err, left(name))
	}
	if err := r.api.Finish(true); err != nil || len(left(name)) > 0 {
		t.Errorf("%v; left %v", err, left(name))
	}
}
