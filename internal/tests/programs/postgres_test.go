package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const postgresConf = `
listen_addresses = '%[2]s'
port = 5432
unix_socket_directories = '%[1]s'
fsync = off
shared_buffers = 16MB
max_connections = 30
max_wal_senders = 4
wal_level = replica
hot_standby = on
log_connections = on
`

const postgresAccess = `
local all all trust
host all all ::/0 trust
host replication all ::/0 trust
`

// postgres gives a program the user postgres: the server refuses to run as root.
func postgres(program string, argv ...string) []string {
	return append([]string{"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", postgresBin(program)}, argv...)
}

// postgresBin finds a program of the newest PostgreSQL: Debian keeps the server's programs off the PATH.
func postgresBin(program string) string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	if len(found) == 0 {
		return program
	}
	return found[len(found)-1]
}

// database starts a server on s1 that binds the addresses of both names.
func database(t *testing.T, rw, ro *service) {
	t.Helper()
	top := postgresPlace(t)
	data := filepath.Join(top, "data")
	local(t, postgres("initdb", "-D", data, "-A", "trust", "-N", "--no-instructions", "-E", "UTF8", "--locale=C")...)
	put(t, data, "postgresql.conf", fmt.Sprintf(postgresConf, top, rw.addr.String()+","+ro.addr.String()))
	put(t, data, "pg_hba.conf", postgresAccess)
	srv := rw.own("s1", top, postgres("postgres", "-D", data)...)
	ro.servers = append(ro.servers, srv)
	srv.proc.WaitFor(t, "database system is ready to accept connections") // it listens while it is still starting up
	rw.serving("tcp", 5432)
}

func postgresPlace(t *testing.T) string {
	t.Helper()
	top := place(t)
	local(t, "chown", "postgres:", top)
	return top
}

// replica copies the database from the name rw, and serves reads under the name ro.
func replica(t *testing.T, rw, ro *service) {
	t.Helper()
	top := postgresPlace(t)
	data := filepath.Join(top, "data")
	on(t, "s2", postgres("pg_basebackup", "-h", rw.host, "-U", "postgres", "-D", data, "-R", "-X", "stream", "-c", "fast", "-N")...)
	put(t, data, "postgresql.conf", fmt.Sprintf(postgresConf, top, "::"))
	os.Remove(filepath.Join(data, "postmaster.pid"))
	srv := ro.wild("s2", top, postgres("postgres", "-D", data)...)
	srv.proc.WaitFor(t, "database system is ready to accept read-only connections")
	ro.serving("tcp", 5432)
}

// psql asks one question by name; the answer is unaligned, without headers.
func psql(t *testing.T, s *service, query string) string {
	t.Helper()
	return strings.TrimSpace(client(t, "psql", "-X", "-h", s.host, "-U", "postgres", "-At", "-v", "ON_ERROR_STOP=1", "-c", query))
}

func pgbench(t *testing.T, s *service, argv ...string) string {
	t.Helper()
	return client(t, append([]string{postgresBin("pgbench"), "-h", s.host, "-U", "postgres"}, append(argv, "postgres")...)...)
}

// One database takes the writes, by one name; its replica was copied and is kept up by that name, and
// both answer reads under another.
func TestPostgreSQL(t *testing.T) {
	rw, ro := newService(t, "db"), newService(t, "db-read")
	database(t, rw, ro)
	pgbench(t, rw, "-i", "-q", "-s", "1")
	transactions(t, pgbench(t, rw, "-n", "-c", "4", "-t", "100"), 400)
	// Each transaction adds one number in four places.
	want := psql(t, rw, "select count(*), sum(delta) from pgbench_history")
	for _, table := range []string{"accounts.abalance", "tellers.tbalance", "branches.bbalance"} {
		from, column, _ := strings.Cut(table, ".")
		if got := psql(t, rw, "select 400, sum("+column+") from pgbench_"+from); got != want {
			t.Errorf("pgbench_%s: %s, the history says %s", from, got, want)
		}
	}
	bulk(t, rw)
	replica(t, rw, ro)
	transactions(t, pgbench(t, ro, "-n", "-S", "-C", "-c", "4", "-t", "10"), 40)
	n := map[string]int{}
	for _, srv := range ro.servers {
		n[srv.host] = strings.Count(srv.proc.Output(), "application_name=pgbench")
	}
	both(t, "connections of pgbench in the logs", n)
}

// transactions fails unless all of them were processed and none failed.
func transactions(t *testing.T, out string, n int) {
	t.Helper()
	if !regexp.MustCompile(fmt.Sprintf(`actually processed: %d/%d\nnumber of failed transactions: 0 `, n, n)).MatchString(out) {
		t.Errorf("pgbench: want %d transactions, none failed, got:\n%s", n, tail(out))
	}
}

// bulk copies a table in and out, and compares all of it.
func bulk(t *testing.T, s *service) {
	t.Helper()
	var rows strings.Builder
	text := letters(1 << 16)
	for i := range 200_000 {
		fmt.Fprintf(&rows, "%d\t%s\n", i, text[i%65000:][:40])
	}
	dir := place(t)
	in, out := put(t, dir, "in", rows.String()), filepath.Join(dir, "out")
	psql(t, s, "create table bulk (n int primary key, t text)")
	psql(t, s, `\copy bulk from '`+in+`'`)
	psql(t, s, `\copy (select * from bulk order by n) to '`+out+`'`)
	sameFile(t, out, []byte(rows.String()))
}
