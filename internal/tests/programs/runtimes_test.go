package programs

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// seen counts the pages of each server in what a client printed.
func seen(out string) map[string]int {
	n := map[string]int{}
	for line := range strings.Lines(out) {
		n[strings.TrimSpace(strings.TrimPrefix(line, "served by "))]++
	}
	return n
}

const nodeServer = `
const http = require('http')
const [address, name] = process.argv.slice(2)
http.createServer((req, res) => {
	const parts = []
	req.on('data', part => parts.push(part))
	req.on('end', () => req.method === 'POST' ? res.end(Buffer.concat(parts)) : res.end('served by ' + name + '\n'))
}).listen(8080, address)
`

// nodeClient makes requests on one connection each, then sends a megabyte and compares the answer.
const nodeClient = `
const http = require('http')
const [url, count] = process.argv.slice(2)
const ask = (method, body) => new Promise((resolve, reject) => {
	const req = http.request(url, {method, agent: false}, res => {
		const parts = []
		res.on('data', part => parts.push(part))
		res.on('end', () => resolve(Buffer.concat(parts)))
	})
	req.on('error', reject)
	req.end(body)
})
const main = async () => {
	for (let i = 0; i < Number(count); i++) process.stdout.write(await ask('GET'))
	const body = require('crypto').randomBytes(1 << 20)
	if (!body.equals(await ask('POST', body))) throw new Error('another answer came back')
	const page = await (await fetch(url)).text()
	if (!page.startsWith('served by ')) throw new Error(page)
}
main()
`

func TestNode(t *testing.T) {
	s := newService(t, "node")
	for i, host := range []string{"s1", "s2"} {
		dir, addr, start := place(t), s.addr.String(), s.own
		if i == 1 {
			addr, start = "::", s.wild
		}
		start(host, dir, "node", put(t, dir, "server.js", nodeServer), addr, host)
	}
	s.serving("tcp", 8080)
	out := client(t, "node", put(t, place(t), "client.js", nodeClient), fmt.Sprintf("http://%s:8080/", s.host), "20")
	both(t, "pages that node fetched", seen(out))
}

// javaClient asks over one connection each, then sends a megabyte and compares.
const javaClient = `
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Arrays;
import java.util.Random;

public class Client {
	public static void main(String[] args) throws Exception {
		URI uri = URI.create(args[0]);
		for (int i = 0; i < Integer.parseInt(args[1]); i++) {
			HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
			System.out.print(client.send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString()).body());
		}
		byte[] body = new byte[1 << 20];
		new Random(1).nextBytes(body);
		byte[] back = HttpClient.newHttpClient().send(HttpRequest.newBuilder(uri).POST(HttpRequest.BodyPublishers.ofByteArray(body)).build(),
			HttpResponse.BodyHandlers.ofByteArray()).body();
		if (!Arrays.equals(body, back)) throw new Exception("another answer came back: " + back.length + " bytes");
	}
}
`

func TestJava(t *testing.T) {
	s := newService(t, "java")
	for _, host := range []string{"s1", "s2"} {
		dir := place(t)
		s.own(host, dir, "node", put(t, dir, "server.js", nodeServer), s.addr.String(), host)
	}
	s.serving("tcp", 8080)
	dir := place(t)
	// Debian's small compiler: the one of the JDK comes with 80 MB of other tools.
	local(t, "ecj", "-proc:none", "-11", "-d", dir, put(t, dir, "Client.java", javaClient))
	out := client(t, "java", "-Xmx128m", "-cp", dir, "Client", fmt.Sprintf("http://%s:8080/", s.host), strconv.Itoa(16))
	both(t, "pages that Java fetched", seen(out))
}

const wsgi = `
import os
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["REQUEST_METHOD"] == "POST":
        return [environ["wsgi.input"].read()]
    return [("served by %s\n" % os.environ["WHERE"]).encode()]
`

func TestGunicorn(t *testing.T) {
	s := newService(t, "gunicorn")
	for i, host := range []string{"s1", "s2"} {
		dir, addr, start := place(t), s.addr.String(), s.own
		if i == 1 {
			addr, start = "::", s.wild
		}
		put(t, dir, "where.py", wsgi)
		start(host, dir, "env", "WHERE="+host, "/usr/bin/python3", "/usr/bin/gunicorn", "--chdir", dir, "--workers", "2", "--bind", fmt.Sprintf("[%s]:8000", addr), "where:app")
	}
	s.serving("tcp", 8000)
	url := fmt.Sprintf("http://%s:8000/", s.host)
	var out string
	for range 20 {
		out += client(t, "curl", "-sS", "--fail", url)
	}
	both(t, "pages of gunicorn", seen(out))
	file := put(t, place(t), "up", letters(1<<20))
	if back := client(t, "curl", "-sS", "--fail", "--data-binary", "@"+file, url); back != letters(1<<20) {
		t.Errorf("%d bytes came back of 1 MB", len(back))
	}
}
