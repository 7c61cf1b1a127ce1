// Command setload writes to memcached at a fixed rate, and watches how much a memcached is written to. It
// speaks memcached's protocol over UDP, one datagram a request and one an answer.
//
//	setload -rate 2000 -for 30s p1.svc:11211 p2.svc:11211
//	setload -watch [::1]:11212
//
// A key belongs to one of the partitions by its hash, as clients of memcached do it with a list of
// servers; here the partitions are names, and which server has one is not the client's business.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"time"
)

func main() {
	rate := flag.Int("rate", 1000, "requests a second")
	size := flag.Int("size", 1024, "bytes of a value")
	span := flag.Duration("for", 10*time.Second, "how long")
	seed := flag.Uint64("seed", 1, "of the keys")
	server := flag.String("watch", "", "print how many writes this server has had, every 100 ms, and write nothing")
	flag.Parse()
	if *server != "" {
		watch(os.Stdout, *server)
		return
	}
	w, err := newWriter(flag.Args(), *size, *seed)
	if err != nil {
		log.Fatal("setload: ", err)
	}
	w.run(*rate, *span)
	fmt.Println(w.report())
}
