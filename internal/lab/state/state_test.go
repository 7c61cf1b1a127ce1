package state

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// here is a directory of a lab whose two parents are the test's own: the last lab to go takes them along.
func here(t *testing.T, name string) Dir {
	return Dir{Base: filepath.Join(t.TempDir(), "scaffold", "lab"), Lab: name}
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	d := here(t, "net")
	if s, err := d.Read(); s != nil || err != nil {
		t.Fatalf("before anything is written: %+v, %v", s, err)
	}
	want := State{Name: "net", Phase: Starting, Owner: 7, Nodes: []string{"mgmt", "h1"}}
	if err := d.Write(&want); err != nil {
		t.Fatal(err)
	}
	got, err := d.Read()
	if err != nil || got.Name != want.Name || got.Phase != want.Phase || got.Owner != want.Owner || !slices.Equal(got.Nodes, want.Nodes) {
		t.Errorf("read %+v, %v; wrote %+v", got, err, want)
	}
	if labs, err := Names(d.Base); err != nil || !slices.Equal(labs, []string{"net"}) {
		t.Errorf("labs %v, %v", labs, err)
	}
	if err := os.WriteFile(d.state(), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read(); err == nil || !strings.Contains(err.Error(), d.state()) {
		t.Errorf("half a state: %v; it does not say where", err)
	}
}

func TestOneProcessAtATimeChangesALab(t *testing.T) {
	d := here(t, "net")
	if err := d.Write(&State{Name: "net", Owner: 4711}); err != nil {
		t.Fatal(err)
	}
	release, err := d.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if _, err := d.Acquire(); !errors.As(err, &busy) || busy.Owner != 4711 || busy.Name != "net" {
		t.Errorf("a second owner: %v", err)
	}
	other, err := (Dir{d.Base, "other"}).Acquire()
	if err != nil {
		t.Errorf("another lab: %v", err)
	}
	other()
	release()
	again, err := d.Acquire()
	if err != nil {
		t.Errorf("after it was released: %v", err)
	}
	again()
}

func TestTheLastLabTakesItsDirectoriesAlong(t *testing.T) {
	d := here(t, "net")
	release, err := d.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	release()
	if _, err := os.Stat(filepath.Dir(d.Base)); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", filepath.Dir(d.Base), err)
	}
	if labs, err := Names(d.Base); labs != nil || err != nil {
		t.Errorf("labs %v, %v", labs, err)
	}
}
