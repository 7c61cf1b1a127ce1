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
	service := flag.String("service", "", "service and port to serve, such as boot:69")
	listen := flag.String("listen", "", "plain address to listen on instead, such as [::1]:6969")
	root := flag.String("root", ".", "directory of the files")
	sessions := flag.String("record", "", "directory that all instances share")
	after := flag.Int64("shed-after", 0, "shed each transfer that began here after so many blocks; 0: none")
	flag.Parse()
	if err := run(*service, *listen, *root, *sessions, *after); err != nil {
		log.Fatal("tftpd: ", err)
	}
}

func run(service, listen, root, sessions string, after int64) error {
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
	conn, err := open(service, listen)
	if err != nil {
		return err
	}
	s := newServer(conn, files, shared)
	s.shedAfter, s.log = after, log.Printf
	log.Printf("serving %s at %v", root, conn.LocalAddr())
	return s.run(s.signals())
}

func open(service, listen string) (net.PacketConn, error) {
	if listen != "" {
		return net.ListenPacket("udp", listen)
	}
	lc := scaffold.ListenConfig{CanResume: true, Notify: func(n scaffold.Notice) { log.Printf("this instance: %s", n) }}
	return lc.ListenPacket(context.Background(), "udp", service)
}

// signals turns SIGUSR1, SIGTERM and SIGINT into work for the server.
func (s *server) signals() <-chan func() {
	got := make(chan os.Signal, 4)
	signal.Notify(got, syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGINT)
	do := make(chan func(), 4)
	go func() { // ends with the process
		for one := range got {
			do <- func() {
				s.shedAll()
				if one != syscall.SIGUSR1 {
					s.conn.Close()
				}
			}
		}
	}()
	return do
}
