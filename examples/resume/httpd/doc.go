// Command httpd serves files over HTTP/1.1 so that a download survives the death of its server: clients
// are unmodified, and the file arrives whole.
//
//	httpd --service files:80 --root /srv/files --record /srv/sessions
//
// Each instance writes down, before the first byte of an answer leaves, which bytes that answer has: the
// header as it is, then a file. When a connection comes that began at another instance,
// [scaffold.Identify] says at which byte the client stands, and the answer goes on right there. The
// service needs `failover: continue`; all instances share the record's directory and serve the same files.
//
// SIGUSR1 sheds the connections of this instance; SIGTERM sheds them and ends.
package main
