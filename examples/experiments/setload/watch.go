package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// watchEvery is how often a server is asked.
const watchEvery = 100 * time.Millisecond

// watch prints a server's count of writes for ever; while it is not there it prints nothing.
func watch(out io.Writer, addr string) {
	for {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			ask(out, c)
			c.Close()
		}
		time.Sleep(watchEvery)
	}
}

// ask prints the count again and again until the server goes away.
func ask(out io.Writer, c net.Conn) {
	answers := bufio.NewScanner(c)
	for {
		if _, err := io.WriteString(c, "stats\r\n"); err != nil {
			return
		}
		for answers.Scan() && answers.Text() != "END" {
			if count, ok := strings.CutPrefix(answers.Text(), "STAT cmd_set "); ok {
				fmt.Fprintln(out, count)
			}
		}
		if answers.Err() != nil || answers.Text() != "END" {
			return
		}
		time.Sleep(watchEvery)
	}
}
