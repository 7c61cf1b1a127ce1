package exit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

func TestAnErrorIsOneSentence(t *testing.T) {
	for want, err := range map[string]error{
		"scaffold: /x: no such file or directory":   &fs.PathError{Op: "stat", Path: "/x", Err: syscall.ENOENT},
		"scaffold: lab file: /x: permission denied": fmt.Errorf("lab file: %w", &fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}),
		"scaffold login: --token is missing":        errors.New("scaffold login: --token is missing"),
		"scaffold: the network has keys":            errors.New("the network has keys"),
	} {
		var said bytes.Buffer
		Report(&said, err, func(error) (Code, string) { return OK, "" })
		if got, _, _ := strings.Cut(said.String(), "\n"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
