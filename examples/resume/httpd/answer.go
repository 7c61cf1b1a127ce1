package main

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path"
	"time"
)

// An answer is all that is needed to send the bytes of one response, or any tail of them, again.
type answer struct {
	Base int64  // where on the connection it begins
	Head string // the header as it was sent, or is to be, with the body where that is no file
	Path string // of the file below the root; "" for none
	Size int64  // of the file
	Read int64  // bytes of the client's up to the end of this request
	Last bool   // the connection ends after it
}

// end is where on the connection the next answer begins.
func (a *answer) end() int64 { return a.Base + int64(len(a.Head)) + a.Size }

// send writes the answer from a place on the connection on.
func (a *answer) send(to io.Writer, root *os.Root, from int64) error {
	skip := from - a.Base
	if head := int64(len(a.Head)); skip < head {
		if _, err := io.WriteString(to, a.Head[skip:]); err != nil {
			return err
		}
		skip = head
	}
	if a.Path == "" {
		return nil
	}
	return a.sendFile(to, root, skip-int64(len(a.Head)))
}

func (a *answer) sendFile(to io.Writer, root *os.Root, from int64) error {
	file, err := root.Open(a.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != a.Size {
		return fmt.Errorf("%s is not the file any more that the answer began with", a.Path)
	}
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return err
	}
	_, err = io.CopyN(to, file, a.Size-from)
	return err
}

// reply finds the answer to a request. It fills in all but its place on the connection.
func reply(root *os.Root, req *http.Request, now time.Time) *answer {
	last := req.Close || req.ProtoMajor == 1 && req.ProtoMinor == 0
	if req.Method != http.MethodGet && req.Method != http.MethodHead || req.ContentLength != 0 {
		return refusal(http.StatusMethodNotAllowed, now)
	}
	name := path.Clean("/" + req.URL.Path)[1:]
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return refusal(http.StatusNotFound, now)
	}
	a := &answer{Path: name, Size: info.Size(), Last: last}
	a.Head = header(http.StatusOK, now, a.Size, mime.TypeByExtension(path.Ext(name)), last)
	if req.Method == http.MethodHead {
		a.Path, a.Size = "", 0
	}
	return a
}

// refusal ends the connection: what else the client has sent with it is not worth sorting out.
func refusal(status int, now time.Time) *answer {
	text := http.StatusText(status) + "\n"
	return &answer{Head: header(status, now, int64(len(text)), "text/plain", true) + text, Last: true}
}

func header(status int, now time.Time, size int64, kind string, last bool) string {
	if kind == "" {
		kind = "application/octet-stream"
	}
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n",
		status, http.StatusText(status), now.UTC().Format(http.TimeFormat), kind, size)
	if last {
		head += "Connection: close\r\n"
	}
	return head + "\r\n"
}
