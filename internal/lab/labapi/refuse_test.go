package labapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/internal/lab/labapi"
	labv1 "scaffold.dev/scaffold/internal/lab/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A question is one that is not answered as who asks would like.
type question struct {
	call, body string
	status     int
	says       string
}

func (r *rig) refuse(questions ...question) {
	r.Helper()
	for _, q := range questions {
		status, text := r.post(q.call, q.body)
		var said struct{ Code, Message string }
		if err := json.Unmarshal(text, &said); err != nil || status != q.status || said.Code == "" || !strings.Contains(said.Message, q.says) {
			r.Errorf("%s %s: %d %s, want %d with %q", q.call, q.body, status, text, q.status, q.says)
		}
	}
}

func TestWhatIsWrongIsToldWithItsStatus(t *testing.T) {
	serve(t, labapi.Config{Dir: t.TempDir()}).refuse(
		question{"Nothing", "{}", 501, "/scaffold.lab.v1.Lab/Nothing: there is no such call"},
		question{"", "{}", 501, "there is no such call"},
		question{"Up", "{}", 400, `Up: content type "application/json": expected application/connect+json`},
		question{"Check", "{", 400, "unexpected EOF"},
		question{"Check", "{\n\"source\": x}", 400, "(line 2:11): invalid value x"},
		question{"Check", `{"source": 3}`, 400, "invalid value for string field source"},
		question{"Check", `{"sauce": "x"}`, 400, `unknown field "sauce"`},
		question{"Check", `{} {}`, 400, "unexpected token {"},
		question{"Check", "", 400, "expected its text as"},
		question{"Check", "null", 400, "unexpected token null"},
		question{"Check", `{"source": "nodes: ["}`, 400, "not YAML"},
		question{"Draw", `{"format": "svg"}`, 400, "expected either"},
		question{"Draw", `{"format": "svg", "result": {}, "figure": {}}`, 400, "oneof"},
		question{"Draw", `{"format": "svg", "result": {"series": [{"points": [["x", 1]]}]}}`, 400, "cannot unmarshal string"},
		question{"Draw", `{"format": "pdf", "figure": {"title": "x", "end": 1, "panels": [{}]}}`, 400, "expected svg or png"},
		question{"Draw", `{"format": "svg", "figure": {"title": "x", "end": 0, "panels": [{}]}}`, 400, "axis ends at 0"},
		question{"Draw", `{"format": "svg", "figure": {"title": "x"}}`, 400, "nothing was measured"},
		question{"Draw", `{"format": "svg", "figure": {"panels": [{"lines": [{"name": "l", "points": [[1, 2, 3]]}]}]}}`, 400, `line "l": [1 2 3]: expected a point of two numbers`},
	)
}

func TestAMisspelledKeyIsAnErrorHoweverTheTypeIsWritten(t *testing.T) {
	r := serve(t, labapi.Config{})
	for _, kind := range []string{"application/json", "application/json;charset=UTF-8", "application/json; charset=utf-8"} {
		if status, text := r.send("POST", "Check", kind, "", `{"sauce": "x"}`); status != 400 || !strings.Contains(string(text), "unknown field") {
			t.Errorf("%s: %d %s", kind, status, text)
		}
	}
}

func TestMistakesInAFileAreKeptApart(t *testing.T) {
	r := serve(t, labapi.Config{})
	source := "nodes:\n  ctl: controller\n  r: {kind: router, service: true}\nlinks:\n  - [r, x]\n  - [r, y]\n"
	_, err := r.lab.Check(t.Context(), &labv1.LabFile{Path: "/x/a.yaml", Source: source})
	want := &labv1.Mistakes{Lines: []*labv1.Mistake{
		{File: "/x/a.yaml", Line: 5, Text: `link to unknown node "x"; expected one of ctl, r`},
		{File: "/x/a.yaml", Line: 6, Text: `link to unknown node "y"; expected one of ctl, r`},
	}}
	if got := detail(t, err); connect.CodeOf(err) != connect.CodeInvalidArgument || !proto.Equal(got, want) {
		t.Errorf("%v: %v", err, got)
	}
	_, text := r.post("Check", fmt.Sprintf(`{"source": %q}`, source))
	if !strings.Contains(string(text), `"debug":{"lines":[{"file":"lab"`) && !strings.Contains(string(text), `"debug":{"lines":[{"file":"lab",`) {
		t.Errorf("who reads JSON alone is not told the lines: %s", text)
	}
	for _, q := range []*labv1.LabFile{{Source: network, Name: "not-a-name"}, {Source: network, Plane: "steam"}} {
		if _, err := r.lab.Check(t.Context(), q); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%v: %v", q, err)
		}
	}
	c, err := r.lab.Check(t.Context(), &labv1.LabFile{Source: network, Name: "n", Plane: "openflow"})
	if err != nil || !proto.Equal(c, &labv1.Checked{Name: "n", Nodes: 4, Links: 2}) {
		t.Errorf("%v, %v", c, err)
	}
}

func detail(t *testing.T, err error) proto.Message {
	t.Helper()
	said, ok := err.(*connect.Error)
	if !ok || len(said.Details()) != 1 {
		t.Fatalf("no detail in %v", err)
	}
	m, err := said.Details()[0].Value()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOnlyTheTokenAdmits(t *testing.T) {
	safety.Test(t, safety.Door)
	r := serve(t, labapi.Config{Token: "correct horse", Dir: t.TempDir()})
	for shown, want := range map[string]int{"": 401, "Bearer": 401, "Bearer ": 401, "Bearer correct": 401, "Basic correct horse": 401, "Bearer correct horse": 200} {
		if status, text := r.send("POST", "GetVersion", "application/json", shown, "{}"); status != want || strings.Contains(string(text), "correct horse") {
			t.Errorf("%q: %d %s, want %d", shown, status, text, want)
		}
	}
	events, err := r.lab.Run(t.Context(), &labv1.LabFile{Source: network})
	if err == nil && !events.Receive() {
		err = events.Err()
	}
	if connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("a stream without the token: %v", err)
	}
	if a, b := labapi.NewToken(), labapi.NewToken(); a == b || len(a) < 20 {
		t.Errorf("tokens %q and %q", a, b)
	}
}

// What a browser sends to any address for any page, without asking there first, does nothing, also where no token is
// needed; and where it asks first it hears of nobody who may.
func TestAPageOfAnotherSiteCannotAsk(t *testing.T) {
	r := serve(t, labapi.Config{Dir: t.TempDir(), Log: func(format string, args ...any) { t.Errorf("it did "+format, args...) }})
	for _, kind := range []string{"", "text/plain", "text/plain; charset=application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
		if status, text := r.send("POST", "DownAll", kind, "", "{}"); status != http.StatusBadRequest || !strings.Contains(string(text), "expected application/json") {
			t.Errorf("a body of the kind %q: %d %s", kind, status, text)
		}
	}
	if status, text := r.send("GET", "DownAll?connect=v1&encoding=json&message=%7B%7D", "", "", ""); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d %s", status, text)
	}
	q, err := http.NewRequestWithContext(t.Context(), "OPTIONS", r.url+labapi.Path+"DownAll", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Origin": "http://elsewhere", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"} {
		q.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	for name := range answer.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("another site hears %s: %v", name, answer.Header[name])
		}
	}
}

func TestABodyHasALimit(t *testing.T) {
	serve(t, labapi.Config{}).refuse(question{"Check", `{"source": "` + strings.Repeat("x", 64<<20) + `"}`, 429, "is larger than"})
}

func TestWhatIsWrongInALabIsToldWithItsStatus(t *testing.T) {
	nstest.Root(t)
	r, name := up(t, network, "refuse")
	of := func(format string, args ...any) string {
		return fmt.Sprintf(`{"lab": %q, %s}`, name, fmt.Sprintf(format, args...))
	}
	r.refuse(
		question{"GetStatus", `{"lab": "nolab"}`, 404, "lab nolab: no lab is up"},
		question{"GetStatus", `{"lab": "../x"}`, 404, "expected 1 to 20 of a-z"},
		question{"Down", `{"lab": "nolab"}`, 404, "no lab is up"},
		question{"ListLinks", of(`"a": "c1", "b": "r1"`), 404, "no emulated link between"},
		question{"SetLinks", of(`"a": "c1", "b": "r1", "set": {"delay": "1ms"}`), 404, "no emulated link between"},
		question{"SetLinks", of(`"a": "s1", "b": "r1"`), 400, "nothing to set"},
		question{"SetLinks", of(`"a": "s1", "b": "r1", "set": {"delay": ""}`), 400, "expected one word"},
		question{"SetLinks", of(`"a": "s1", "b": "r1", "set": {"delay": "1 ms"}`), 400, "expected one word"},
		question{"SetLinks", of(`"a": "s1", "b": "r1", "set": {"speed": "1"}`), 400, `unknown parameter "speed"`},
		question{"SetLinks", of(`"a": "s1", "b": "r1", "set": {"jitter": "9ms"}`), 400, "at most the delay"},
		question{"Act", of(`"do": "destroy c1"`), 400, "unknown action"},
		question{"Act", of(`"do": "cut c1 c9"`), 400, "no link between"},
		question{"Act", of(`"do": "kill c1/nothing"`), 400, "has no program"},
		question{"Exec", of(`"node": "c9", "argv": ["true"]`), 404, "has no node"},
		question{"Exec", of(`"node": "c1"`), 400, "no command"},
		question{"Exec", of(`"node": "c1", "argv": ["/etc/passwd"]`), 400, "permission denied"},
		question{"Signal", of(`"node": "c1", "pid": 1`), 404, "no command with the pid 1"},
		question{"Signal", of(`"node": "c1", "pid": 1, "signal": "LOUD"`), 400, "expected a name such as TERM"},
		question{"GetLog", of(`"node": "c1", "program": "../../state.json"`), 404, "has no program"},
	)
	for code, begin := range map[connect.Code]func(ctx context.Context) error{
		connect.CodeAlreadyExists: func(ctx context.Context) error {
			return ended(r.lab.Up(ctx, &labv1.LabFile{Source: network, Name: name}))
		},
		connect.CodeNotFound: func(ctx context.Context) error {
			return ended(r.lab.Start(ctx, &labv1.ExecRequest{Lab: name, Node: "c1", Argv: []string{"no-such-program"}}))
		},
		connect.CodeInvalidArgument: func(ctx context.Context) error {
			in, err := r.lab.Replay(ctx)
			if err == nil {
				speed := -1.0
				err = in.Send(&labv1.ReplayRequest{Lab: name, A: "s1", B: "r1", Speed: &speed})
			}
			if err == nil {
				_, err = in.CloseAndReceive()
			}
			return err
		},
	} {
		if err := begin(t.Context()); connect.CodeOf(err) != code {
			t.Errorf("%v, want %v", err, code)
		}
	}
	if err := ended(r.lab.Play(t.Context(), &labv1.LabName{Lab: "nolab"})); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a timeline of no lab: %v", err)
	}
}

// ended is the error of a stream that should have none of its events.
func ended[M any](stream *connect.ServerStreamForClient[M], err error) error {
	if err != nil {
		return err
	}
	defer stream.Close()
	if stream.Receive() {
		return fmt.Errorf("it was begun: %v", stream.Msg())
	}
	return stream.Err()
}
