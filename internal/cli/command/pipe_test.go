package command

import (
	"os"
	"testing"
)

func TestOutputWithoutReaderIsTold(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if unread(int32(w.Fd())) {
		t.Error("a pipe that somebody reads counts as unread")
	}
	r.Close()
	if !unread(int32(w.Fd())) {
		t.Error("a pipe whose reader has closed it counts as read")
	}
}
