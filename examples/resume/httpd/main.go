package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"scaffold.dev/scaffold"
	"scaffold.dev/scaffold/examples/resume/record"
)

func main() {
	service := flag.String("service", "", "service and port to serve, such as files:80")
	listen := flag.String("listen", "", "plain address to listen on instead, such as [::1]:8080")
	root := flag.String("root", ".", "directory of the files")
	sessions := flag.String("record", "", "directory that all instances share")
	flag.Parse()
	if err := run(*service, *listen, *root, *sessions); err != nil {
		log.Fatal("httpd: ", err) // not 0: connections that are open are then reset, not ended
	}
}

func run(service, listen, root, sessions string) error {
	if sessions == "" || (service == "") == (listen == "") {
		return errors.New("want --record, and either --service or --listen")
	}
	files, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	shared, err := record.Open(sessions, 24*time.Hour)
	if err != nil {
		return err
	}
	l, err := open(service, listen)
	if err != nil {
		return err
	}
	s := &server{root: files, sessions: shared, identify: scaffold.Identify, log: log.Printf}
	ended := make(chan error, 1)
	go watch(l, ended) // ends with the process
	log.Printf("serving %s at %v", root, l.Addr())
	go s.accept(l) // ends with the listener
	return <-ended
}

func open(service, listen string) (net.Listener, error) {
	if listen != "" {
		return net.Listen("tcp", listen)
	}
	lc := scaffold.ListenConfig{CanResume: true, Notify: func(n scaffold.Notice) { log.Printf("this instance: %s", n) }}
	return lc.Listen(context.Background(), "tcp", service)
}

func (s *server) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log("accept: %v", err)
			time.Sleep(10 * time.Millisecond) // no file descriptor is left, most likely
			continue
		}
		go s.serve(c) // ends with the connection
	}
}

// watch sheds at SIGUSR1, and at SIGTERM or SIGINT for the last time.
func watch(l net.Listener, ended chan<- error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGINT)
	for s := range signals {
		if s != syscall.SIGUSR1 {
			l.Close()
		}
		n, err := scaffold.FailAll(l)
		log.Printf("shed %d connections: %v", n, err)
		if s != syscall.SIGUSR1 {
			ended <- err
			return
		}
	}
}
