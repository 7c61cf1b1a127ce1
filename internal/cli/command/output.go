package command

import (
	"io"
	"os"
	"sync/atomic"
)

// A checkedWriter is a command's output that remembers the first write that failed: a command that does not look at each of
// its lines still must not end with 0 when its token, or its plan, went nowhere. Several goroutines may write.
type checkedWriter struct {
	io.Writer
	failed atomic.Pointer[error]
}

func (w *checkedWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if err != nil {
		w.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

func (w *checkedWriter) err() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Bare is the writer behind a command's output: the file that a child process is given, and a terminal is known by.
func Bare(out io.Writer) io.Writer {
	if w, ok := out.(*checkedWriter); ok {
		return w.Writer
	}
	return out
}

// ToTerminal says that somebody would read the output as text.
func ToTerminal(out io.Writer) bool {
	f, ok := Bare(out).(*os.File)
	return ok && terminal(f)
}
