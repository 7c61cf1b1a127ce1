package scaffold_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"scaffold.dev/scaffold"
)

// A web server behind a name; any browser on a host of the network finds it at http://web.svc/.
func ExampleListen() {
	l, err := scaffold.Listen("tcp", "web:80")
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(l, http.FileServer(http.Dir("."))))
}

// A client: the network picks the instance when the first packet goes by. Where no host daemon runs, or nobody serves,
// it hears so at once.
func ExampleDial() {
	c, err := scaffold.Dial("tcp", "web:80")
	if errors.Is(err, scaffold.ErrNoDaemon) {
		log.Fatal("this machine is no host of a network: ", err)
	}
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
	io.Copy(os.Stdout, c)
}

// A server that stops accepting when it is drained, and sheds what it still has.
func ExampleListenConfig() {
	draining := make(chan struct{}, 1)
	lc := scaffold.ListenConfig{Notify: func(n scaffold.Notice) {
		if n == scaffold.Draining {
			draining <- struct{}{}
		}
	}}
	l, err := lc.Listen(context.Background(), "tcp", "web:80")
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(l, http.FileServer(http.Dir("."))) // ends with the program
	<-draining
	n, err := scaffold.FailAll(l)
	log.Printf("shed %d connections: %v", n, err)
}

// A server whose instances all give the same bytes: one goes on where another ended.
func ExampleIdentify() {
	serve := func(c net.Conn, file *os.File) error {
		id, err := scaffold.Identify(c)
		if err != nil && !errors.Is(err, scaffold.ErrNoFlow) {
			return err
		}
		if id.Resumed {
			file.Seek(int64(id.Sent), io.SeekStart)
		}
		_, err = io.Copy(c, file)
		return err
	}
	_ = serve
}

// A server that has to give a client up in the middle of an answer.
func ExampleCloseFail() {
	abandon := func(c net.Conn) {
		if err := scaffold.CloseFail(c); err != nil {
			log.Print(err) // the client's connection was reset
		}
	}
	_ = abandon
}

// A long download that leaves the slow network once the fast one is there.
func ExampleMove() {
	c, err := scaffold.Dial("tcp", "files:80")
	if err != nil {
		log.Fatal(err)
	}
	if err := scaffold.Move(c, "wlan0"); errors.Is(err, scaffold.ErrRefused) {
		log.Print("it stays where it is: ", err)
	}
}
