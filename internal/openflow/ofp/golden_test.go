package ofp

import (
	"bufio"
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"testing"
)

// A recording is a message as Open vSwitch sent it.
type recording struct {
	name  string
	bytes []byte
}

const recorded = "testdata/openvswitch.txt"

// recordings reads what TestOpenVSwitchAnswers wrote: a name and a message in each line.
func recordings(t testing.TB) (all []recording) {
	t.Helper()
	file, err := os.Open(recorded)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<18)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		name, text, _ := strings.Cut(lines.Text(), ": ")
		b, err := hex.DecodeString(text)
		if err != nil || len(b) == 0 {
			t.Fatalf("%s: %q: %v", recorded, lines.Text(), err)
		}
		all = append(all, recording{name, b})
	}
	return all
}

// TestWhatOpenVSwitchSaysIsUnderstood: nothing in it is of a kind that we do not know, and we would say
// it in the same bytes.
func TestWhatOpenVSwitchSaysIsUnderstood(t *testing.T) {
	all := recordings(t)
	if len(all) < 60 {
		t.Errorf("%s has %d messages, want both directions of both versions", recorded, len(all))
	}
	for _, r := range all {
		understood(t, r)
	}
}

func understood(t *testing.T, r recording) {
	t.Helper()
	m, err := Parse(r.bytes)
	if err != nil {
		t.Errorf("%s: %v: %x", r.name, err, r.bytes)
		return
	}
	if what := unknown(reflect.ValueOf(m)); what != "" {
		t.Errorf("%s: %s in %.300v", r.name, what, m.Body)
	}
	if again, err := m.Append(nil); err != nil || !lossy(m) && string(again) != string(r.bytes) {
		t.Errorf("%s: %.300v:\n    it %.400x\n    we %.400x (%v)", r.name, m.Body, r.bytes, again, err)
	}
}

// lossy reports what Open vSwitch says with properties of its own, which we pass over.
func lossy(m Message) bool {
	reply, _ := m.Body.(MultipartReply)
	switch reply.Part.(type) {
	case PortsStats, Tables:
		return m.Version >= V15
	}
	return false
}

// unknown finds a value of an Other type.
func unknown(v reflect.Value) string {
	if strings.HasPrefix(v.Type().Name(), "Other") || v.Type().Name() == "Experimenter" {
		return v.Type().Name()
	}
	var parts []reflect.Value
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			parts = append(parts, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			parts = append(parts, v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, v.Index(i))
		}
	}
	for _, p := range parts {
		if what := unknown(p); what != "" {
			return what
		}
	}
	return ""
}
