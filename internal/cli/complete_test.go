package cli

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/command/commandtest"
	"scaffold.dev/scaffold/internal/cli/remote"
)

// What the scripts of `scaffold completion` ask: they call __complete with the line until the cursor.
func TestShellsCompleteNames(t *testing.T) {
	dir, err := os.MkdirTemp("", "cli") // a socket's path has 107 characters
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- api.Serve(ctx, newFake(), l) }()
	defer func() { stop(); <-served }()
	t.Setenv(remote.APIVariable, "unix:"+filepath.Join(dir, "s"))
	for line, want := range map[string]string{
		"service show |":                      "web",
		"service rm w|":                       "web",
		"service rm x|":                       "",
		"service rm web |":                    "",
		"service create |":                    "",
		"service weight web |":                "s1= s2=",
		"service weight web s1=3 s|":          "s1= s2=",
		"service drain web --instance |":      "s1 s2",
		"service access web --allow s|":       "s1 s2 service:web",
		"service access web --server |":       "any s1 s2",
		"service create db --failover c|":     "reset continue",
		"service create db --ready |":         "http:/ none tcp",
		"host drain |":                        "s1 s2",
		"host drain s1 --mode |":              "shed wait",
		"host forget s|":                      "s1 s2",
		"router forget |":                     "r1",
		"explain |":                           "web " + fakeFlow,
		"export |":                            "web",
		"capture |":                           "web",
		"flow ls --service |":                 "web",
		"flow ls --host |":                    "s1 s2",
		"net path s1 |":                       "s2",
		"run --service |":                     "web",
		"service ls -o |":                     "json table",
		"service show --api unix:/nobody/x |": "",
		"flow show |":                         fakeFlow,
		"flow move |":                         fakeFlow + " --to",
		"flow move 9f|":                       fakeFlow,
		"flow move " + fakeFlow + " |":        "--to",
		"explain 9|":                          fakeFlow,
		"token revoke |":                      "1f3c9a0b7d2e4455 77aa",
		"token create --name |":               "",
		"controller remove |":                 "c1 c2",
		"admin forget |":                      "alice",
		"net key retire |":                    "5f0c",
		"net switch show |":                   "sw old",
		"net switch flow ls |":                "sw old",
		"guest rm |":                          "jail",
		"guest add |":                         "",
		"events --by a|":                      "alice admin",
		"events --of |":                       "web s1 s2 r1",
	} {
		var out, errs bytes.Buffer
		code := Main(append([]string{"__completeNoDesc"}, commandtest.Words(strings.Replace(strings.TrimSuffix(line, "|"), " |", " ''", 1)+map[bool]string{true: "''"}[strings.HasSuffix(line, " |")])...), nil, &out, &errs)
		found := strings.Fields(out.String())
		if len(found) > 0 && strings.HasPrefix(found[len(found)-1], ":") {
			found = found[:len(found)-1]
		}
		if got := strings.Join(found, " "); code != 0 || got != want && !sameWords(got, want) {
			t.Errorf("%s: exit code %d, %q, want %q\n%s", line, code, got, want, errs.String())
		}
	}
}

func sameWords(a, b string) bool {
	x, y := map[string]bool{}, map[string]bool{}
	for _, w := range strings.Fields(a) {
		x[w] = true
	}
	for _, w := range strings.Fields(b) {
		y[w] = x[w]
		if !x[w] {
			return false
		}
	}
	return len(x) == len(y)
}

// Somebody who presses Tab does not wait for a daemon that hangs.
func TestCompletionWaitsForNobody(t *testing.T) {
	socket, asked := asks(t)
	t.Setenv(remote.APIVariable, "unix:"+socket)
	var out, errs bytes.Buffer
	if code := Main([]string{"__complete", "service", "show", ""}, nil, &out, &errs); code != 0 || !strings.HasPrefix(out.String(), ":") || len(asked) == 0 {
		t.Errorf("exit code %d, %q, %q; want no names", code, out.String(), errs.String())
	}
}
