package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// unpack reads an archive back, by name.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = string(text)
		if h.ModTime.After(time.Now()) {
			t.Errorf("%s was changed at %v, in the future", h.Name, h.ModTime)
		}
	}
}

func dump(t *testing.T, sources ...Source) (map[string]string, *Manifest) {
	t.Helper()
	var out bytes.Buffer
	m, err := Dump(t.Context(), &out, "top", "v0", sources)
	if err != nil {
		t.Fatal(err)
	}
	return unpack(t, out.Bytes()), m
}

func says(name, text string) Source {
	return Source{name, func(context.Context) ([]byte, error) { return []byte(text), nil }}
}

func TestOneSourceThatFailsDoesNotTakeTheOthersAlong(t *testing.T) {
	files, m := dump(t, says("a", "one"), Source{"b", func(context.Context) ([]byte, error) { return []byte("half"), errors.New("broke off") }}, says("c", "three"))
	if files["top/a"] != "one" || files["top/b"] != "half" || files["top/c"] != "three" {
		t.Errorf("the archive has %q", files)
	}
	if missing := m.Missing(); len(missing) != 1 || missing[0].Name != "b" || missing[0].Error != "broke off" {
		t.Errorf("missing: %+v, want b", missing)
	}
	var told Manifest
	if err := json.Unmarshal([]byte(files["top/MANIFEST.json"]), &told); err != nil || len(told.Entries) != 3 || told.Version != "v0" {
		t.Errorf("the manifest is %q: %v", files["top/MANIFEST.json"], err)
	}
}

func TestOfALongTextTheEndIsKept(t *testing.T) {
	files, m := dump(t, says("log", strings.Repeat("an old line\n", sourceMost/12+100)+"the last line\n"))
	text := files["top/log"]
	if len(text) > sourceMost || !strings.HasSuffix(text, "\nthe last line\n") || !strings.HasPrefix(text, "an old line\n") || !m.Entries[0].Cut {
		t.Errorf("%d bytes, %q ... %q, cut %v", len(text), text[:20], text[len(text)-30:], m.Entries[0].Cut)
	}
}

func TestSecretsStayOnTheMachine(t *testing.T) {
	safety.Test(t, safety.Door)
	for _, x := range []struct{ text, secret string }{
		{"joined with scaffold1-AbC_d-9xyz0 today", "AbC_d-9xyz0"},
		{"-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----\nmore", "MC4CAQ"},
		{"-----BEGIN ED25519 PRIVATE KEY-----\nMC4CAQ", "MC4CAQ"},
		{"token: hunter2", "hunter2"},
		{`{"token":"hunter2","name":"x"}`, "hunter2"},
		{"root 1 scaffold join --token hunter2 10.0.0.1", "hunter2"},
		{"Authorization: hunter2", "hunter2"},
		{"etcd_password = hunter2", "hunter2"},
	} {
		files, _ := dump(t, says("x", x.text), Source{"y", func(context.Context) ([]byte, error) { return nil, errors.New(x.text) }})
		if all := fmt.Sprint(files); strings.Contains(all, x.secret) {
			t.Errorf("%q is in the archive: %q", x.secret, all)
		}
	}
	if got := string(redact([]byte(`{"hosts":3,"tokens":2}`))); got != `{"hosts":3,"tokens":2}` {
		t.Errorf("what is no secret became %q", got)
	}
}

func TestADaemonIsAskedForAllItKnows(t *testing.T) {
	var asked []string
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		if r.URL.Path == "/debug/pprof/heap" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, r.Method, " ", r.URL.Path)
	}))
	defer served.Close()
	files, m := dump(t, append(Daemon("controld", "c1", served.Client(), served.URL), FlowsOf("s1", served.Client(), served.URL))...)
	for name, want := range map[string]string{"c1/metrics.txt": "GET /metrics", "c1/healthz.json": "GET /healthz", "c1/services.json": "POST /scaffold.v1.Admin/ListServices",
		"s1/flows.json": "POST /scaffold.v1.Local/ListFlows"} {
		if files["top/"+name] != want {
			t.Errorf("%s is %q, want %q (asked %q)", name, files["top/"+name], want, asked)
		}
	}
	if missing := m.Missing(); len(missing) != 1 || missing[0].Name != "c1/heap.pprof" || !strings.HasPrefix(missing[0].Error, "404") {
		t.Errorf("missing: %+v, want the heap alone", missing)
	}
}

func TestAMachineIsDescribedAlsoWithoutItsTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	files, m := dump(t, Machine(time.Hour)...)
	if !strings.Contains(files["top/machine/proc/version"], "Linux") || !strings.Contains(files["top/machine/sysctl.txt"], "net.core.somaxconn = ") {
		t.Errorf("the archive lacks the kernel's version or settings: %d files", len(files))
	}
	if !slices.ContainsFunc(m.Missing(), func(e Entry) bool { return e.Name == "machine/links.json" && e.Error == "ip is not installed" }) {
		t.Errorf("missing: %+v, want ip among them", m.Missing())
	}
}

// A program that hangs is given up, and what it has started ends with it.
func TestAProgramThatHangsIsGivenUpWithAllThatItStarted(t *testing.T) {
	safety.Test(t, safety.Trace)
	ctx, cancel := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "started")
	done := make(chan error, 1)
	go func() {
		_, err := command("sh", "-c", "sleep 1000 & echo $! >"+path+"; wait")(ctx)
		done <- err
	}()
	var pid []byte
	nstest.Wait(t, "whether sh can write to "+path, func() (err error) {
		if pid, err = os.ReadFile(path); err == nil && !bytes.HasSuffix(pid, []byte("\n")) {
			err = errors.New("not written yet")
		}
		return err
	})
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "did not end") {
		t.Errorf("error %v, want that it did not end", err)
	}
	nstest.Wait(t, "ps: is a sleep left?", func() error {
		stat, err := os.ReadFile("/proc/" + string(bytes.TrimSpace(pid)) + "/stat")
		if err != nil || bytes.Contains(stat, []byte(") Z ")) { // whoever adopted it may be late to wait for it
			return nil
		}
		return fmt.Errorf("what it started runs on: %s", stat)
	})
}
