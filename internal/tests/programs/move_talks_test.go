package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// login opens an ssh session and gives it commands; the shell at the other end stays the same, and what it
// takes for the addresses of the connection.
func (j *journey) login(name, config string) *rider {
	j.t.Helper()
	d := j.dialogue("ssh", "-F", config, "root@"+j.host, "sh")
	shell, err := d.say("echo $$ $SSH_CONNECTION")
	if err != nil {
		j.t.Fatal(err)
	}
	return d.rider(name,
		func(i int64) string { return fmt.Sprintf("echo %d $$ $SSH_CONNECTION", i) },
		func(i int64) string { return fmt.Sprintf("%d %s", i, shell) },
		func(*testing.T, int64) {})
}

// sshd starts the server and returns the configuration of its clients.
func (j *journey) sshd() string {
	keys := sshKeys(j.t, j.host)
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		j.t.Fatal(err)
	}
	dir := place(j.t)
	config := put(j.t, dir, "sshd_config", fmt.Sprintf(sshdConf, keys, j.service.at(22), "s1"))
	j.own("s1", dir, "/usr/sbin/sshd", "-D", "-f", config, "-E", filepath.Join(dir, "sshd.log"))
	return put(j.t, keys, "ssh_config", fmt.Sprintf(sshConf+"HostKeyAlias "+j.host+"\n", keys))
}

// transaction leaves one open across all moves: its server process stays the same, nobody else sees a row
// before it commits, and then all of them are there.
func (j *journey) transaction() *rider {
	j.t.Helper()
	psql := []string{"psql", "-X", "-q", "-h", j.host, "-U", "postgres", "-At", "-v", "ON_ERROR_STOP=1"}
	j.client(append(psql, "-c", "create table ride (n bigint primary key)")...)
	d := j.dialogue(psql...)
	backend, err := d.say("begin; select pg_backend_pid();")
	if err != nil {
		j.t.Fatal(err)
	}
	rows := append(psql, "-c", "select count(*), coalesce(sum(n), 0) from ride")
	return d.rider("psql",
		func(i int64) string {
			return fmt.Sprintf("insert into ride values (%d) returning n, pg_backend_pid();", i)
		},
		func(i int64) string { return fmt.Sprintf("%d|%s", i, backend) },
		func(t *testing.T, n int64) {
			if got := j.client(rows...); got != "0|0" {
				t.Errorf("before it is committed others see %q, want none", got)
			}
			d.must(t, "commit; select 'committed';", "committed")
			if got, want := j.client(rows...), fmt.Sprintf("%d|%d", n, n*(n+1)/2); got != want {
				t.Errorf("when it is committed others see %q, want %q", got, want)
			}
		})
}

func (j *journey) postgres() {
	top := postgresPlace(j.t)
	data := filepath.Join(top, "data")
	local(j.t, postgres("initdb", "-D", data, "-A", "trust", "-N", "--no-instructions", "-E", "UTF8", "--locale=C")...)
	put(j.t, data, "postgresql.conf", fmt.Sprintf(postgresConf, top, j.addr))
	put(j.t, data, "pg_hba.conf", postgresAccess)
	srv := j.own("s1", top, postgres("postgres", "-D", data)...)
	srv.proc.WaitFor(j.t, "database system is ready to accept connections")
}

// counter is a redis client that counts: each increment was done once, all by the same connection.
func (j *journey) counter() *rider {
	j.t.Helper()
	d := j.dialogue("redis-cli", "-h", j.host)
	id, err := d.say("client id")
	if err != nil {
		j.t.Fatal(err)
	}
	return d.rider("redis",
		func(int64) string { return "incr ride" },
		func(i int64) string { return strconv.FormatInt(i, 10) },
		func(t *testing.T, _ int64) { d.must(t, "client id", id) })
}

// mqtt publishes a number after the other by one connection, and gets each by another; both stay.
func (j *journey) mqtt() *rider {
	j.t.Helper()
	const both = `mosquitto_sub -h "$1" -q 1 -t ride 2>/dev/null & echo $!; exec mosquitto_pub -h "$1" -q 1 -r -t ride -l`
	d := j.dialogue("sh", "-c", both, "sh", j.host)
	d.lines.Scan()
	reader, err := strconv.Atoi(d.lines.Text())
	if err != nil {
		j.t.Fatal(err, d.lines.Err())
	}
	number := func(i int64) string { return strconv.FormatInt(i, 10) }
	return d.rider("mosquitto", number, number, func(t *testing.T, _ int64) {
		if err := syscall.Kill(reader, syscall.SIGTERM); err != nil { // it would read for ever
			t.Errorf("the subscriber is gone: %v", err)
		}
	})
}

// quic is a program that uses quic-go. Its server says how many connections it has had.
func (j *journey) quic(server server) *rider {
	j.t.Helper()
	d := j.dialogue(self, "quic", "ask", j.host+":443")
	return d.rider("quic-go",
		func(i int64) string { return strconv.FormatInt(i, 10) },
		func(i int64) string { return strconv.FormatInt(i, 10) },
		func(t *testing.T, n int64) {
			out := server.proc.Output()
			if c := regexp.MustCompile(`(?m)^connection \d+ from`).FindAllString(out, -1); len(c) != 1 || strings.Contains(out, "ended") {
				t.Errorf("the server had %d connections, want one:\n%s", len(c), out)
			}
		})
}
