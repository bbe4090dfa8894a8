//go:build linux

package oracle

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/profile"
	"goprof/testdata/jvmtest"
	"goprof/triage"
)

// incident is a server that others wrote, in trouble or healthy.
type incident struct {
	name, program string   // program: a folder of GOPROF_SERVERS
	args          []string // PEER stands for the port of what it asks
	agent         bool     // with OpenTelemetry's
	connections   int      // of clients
	oldest        int      // JDK, if it is not 17
	broker        func(t *testing.T, broker *os.Process)
	peer          time.Duration // how long the peer takes for an answer
	// id and says are what must be found first: says are parts of the sentence. Nothing: it is healthy.
	id   profile.FindingID
	says []string
}

// slowPeer is longer than any look but the last.
const slowPeer = 30 * time.Second

var incidents = []incident{
	{name: "HikariCP and H2, a row is locked", program: "tomcat", args: []string{"row", "PEER"}, connections: 60,
		id: profile.PoolStuck, says: []string{"of 40 threads http-nio-",
			" wait for a connection of orders (10 of 10 are out)",
			"9 are with threads in org.h2.mvstore.tx.Transaction.waitForThisToEnd",
			"1 is with \"nightly-report\" tid=", " in servers.Shop.report"}},
	{name: "Tomcat, a slow peer", program: "tomcat", args: []string{"well", "PEER"}, connections: 60, peer: slowPeer,
		id: profile.WaitingRemote, says: []string{"of 40 threads http-nio-", " wait for PEER in servers.Work.ask, for "}},
	{name: "Spring Boot, a slow peer", program: "spring", args: []string{"1", "PEER"}, connections: 60, peer: slowPeer,
		id: profile.WaitingRemote, says: []string{"of 40 threads http-nio-", " wait for an answer to ",
			" in servers.Spring.work, for ", " connections that the process has opened lead to PEER."}},
	{name: "Spring Boot with OpenTelemetry's agent, a slow peer", program: "spring", args: []string{"1", "PEER"},
		agent: true, connections: 60, peer: slowPeer,
		id: profile.WaitingRemote, says: []string{"of 40 threads http-nio-", " wait for an answer to ",
			" in servers.Spring.work, for ", " connections that the process has opened lead to PEER."}},
	{name: "Kafka, no broker", program: "kafka", args: []string{"PEER"},
		id: profile.WaitingRemote, says: []string{"8 of 8 threads order-* wait for an answer to ",
			"KafkaProducer.send in servers.Messages.send, for ", "has no connection that it has opened."}},
	{name: "Kafka, the broker stands still", program: "kafka", args: []string{"PEER", "wait"}, broker: stop,
		id: profile.WaitingRemote, says: []string{"8 of 8 threads order-* wait for an answer to ",
			" in servers.Messages.send, for ", " connections that the process has opened lead to PEER."}},
	{name: "Helidon, a slow peer", program: "helidon", args: []string{"peer", "PEER"}, connections: 1000, oldest: 21,
		peer: slowPeer, id: profile.PoolStuck,
		says: []string{"of 1000 virtual threads [* *] WebServer socket wait for an answer from PEER"}},
	{name: "Helidon, no permits", program: "helidon", args: []string{"permits", "PEER"}, connections: 1000, oldest: 21,
		id:   profile.PoolStuck,
		says: []string{"1000 of 1000 virtual threads [* *] WebServer socket wait for a permit of a Semaphore, for "}},
	{name: "Helidon, a lock", program: "helidon", args: []string{"lock", "PEER"}, connections: 1000, oldest: 21,
		id: profile.PoolStuck, says: []string{"1000 of 1000 virtual threads [* *] WebServer socket wait for a lock, " +
			"held by \"auditor\" tid=", " in servers.Helidon.keep, for at least "}},
	{name: "Vert.x, a blocked event loop", program: "vertx", args: []string{"sick", "PEER"}, connections: 20,
		peer: slowPeer, id: profile.PoolStuck, says: []string{"The event loop \"vert.x-eventloop-thread-",
			" waits for PEER in servers.Work.ask."}},

	{name: "HikariCP and H2 on Tomcat", program: "tomcat", args: []string{"well", "PEER"}, connections: 20},
	{name: "Spring Boot", program: "spring", args: []string{"1", "PEER"}, connections: 20},
	{name: "Spring Boot with OpenTelemetry's agent", program: "spring", args: []string{"1", "PEER"}, agent: true,
		connections: 20},
	{name: "Kafka", program: "kafka", args: []string{"PEER", "wait"}, broker: func(*testing.T, *os.Process) {}},
	{name: "Helidon", program: "helidon", args: []string{"peer", "PEER"}, connections: 200, oldest: 21},
	{name: "Vert.x", program: "vertx", args: []string{"well", "PEER"}, connections: 20},
}

// TestIncidents: the first line of triage is the sentence that an engineer would write, and of healthy servers nothing
// is said. make test-servers runs it.
func TestIncidents(t *testing.T) {
	if servers == "" {
		t.Skip("needs servers of others, which Maven fetches: make test-servers runs it")
	}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		var rows []string
		for i := range incidents {
			if c := &incidents[i]; jdk.Version >= max(c.oldest, 17) {
				t.Run(c.name, func(t *testing.T) { rows = append(rows, c.look(t, jdk)) })
			}
		}
		t.Logf("incidents on %s\n%s", jdk, strings.Join(rows, "\n"))
	})
}

// look looks at a server until it is judged right, as other tests of triage do. It returns a row for
// docs/evidence/triage.md.
func (c *incident) look(t *testing.T, jdk jvmtest.JDK) string {
	pid, peer := c.start(t, jdk)
	row := func(said string) string { return fmt.Sprintf("| %s | %s | %s |", c.name, jdk, said) }
	var looked acquittal
	for _, length := range looks() {
		got, e, unseen := triagedFor(t, pid, length)
		wrong, right := "", looked.is(accused(got, e), unseen, e)
		if c.id != "" {
			wrong = c.wrong(got, e, peer)
			right = wrong == "" && len(unseen) == 0
		}
		if right {
			return row(firstLine(got, e))
		}
		t.Logf("in %v: %s; %q\n%s", length, wrong, unseen, shown(got))
	}
	t.Error("not what an engineer would say")
	return row("FAILED")
}

// wrong says what is wrong with what was found of a server in trouble. Nothing: it is right.
func (c *incident) wrong(got profile.Triage, e *triage.Evidence, peer string) string {
	if rankOf(got, c.id, short(e)) != 1 {
		return string(c.id) + " is not the first"
	}
	claim := firstLine(got, e)
	for _, part := range c.says {
		if part = strings.ReplaceAll(part, "PEER", peer); !strings.Contains(claim, part) {
			return fmt.Sprintf("%q does not say %q", claim, part)
		}
	}
	return ""
}

// firstLine is the first claim, without that of a machine that is short of CPU.
func firstLine(got profile.Triage, e *triage.Evidence) string {
	for _, f := range got.Findings {
		if f.ID != profile.CPUShort || !short(e) {
			return f.Claim
		}
	}
	return "nothing"
}

// start starts the server, its peer and its clients. peer is the peer's address.
func (c *incident) start(t *testing.T, jdk jvmtest.JDK) (pid int, peer string) {
	dir := filepath.Join(servers, c.program)
	var broker *os.Process
	switch {
	case c.broker != nil:
		broker, peer = startBroker(t)
	case c.program == "kafka":
		peer = freeAddress(t)
	default:
		peer = startPeer(t, c.peer)
	}
	_, port, _ := net.SplitHostPort(peer)
	args := []string{"-Xmx400m", "-cp", textIn(t, dir, "classpath")}
	if c.agent {
		jars, _ := filepath.Glob(filepath.Join(dir, "lib", "opentelemetry-javaagent-*.jar"))
		if len(jars) != 1 {
			t.Fatalf("agents: %q", jars)
		}
		args = append(args, "-javaagent:"+jars[0])
	}
	args = append(args, textIn(t, dir, "main"))
	for _, a := range c.args {
		args = append(args, strings.ReplaceAll(a, "PEER", port))
	}
	pid = startServer(t, jdk, args, c.connections)
	if c.broker != nil {
		c.broker(t, broker)
	}
	return pid, peer
}

func stop(t *testing.T, broker *os.Process) {
	if err := broker.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

// startPeer starts a server that takes so long for each answer.
func startPeer(t *testing.T, each time.Duration) (address string) {
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(each):
		case <-t.Context().Done():
		}
		fmt.Fprint(w, "ok")
	}))
	t.Cleanup(func() {
		peer.CloseClientConnections()
		peer.Close()
	})
	return peer.Listener.Addr().String()
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// brokerDir is a folder without a comma in its name, unlike t.TempDir: to Kafka it would be two folders.
func brokerDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "broker")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// startBroker starts a Kafka broker of its own.
func startBroker(t *testing.T) (broker *os.Process, address string) {
	java, dir := "", brokerDir(t)
	for _, jdk := range jvmtest.JDKs(t) {
		if jdk.Version >= 17 && java == "" {
			java = jdk.Tool("java") // 3.9 knows no newer ones than 23
		}
	}
	address, controller := freeAddress(t), freeAddress(t)
	config := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(config, []byte(strings.Join([]string{"process.roles=broker,controller", "node.id=1",
		"controller.quorum.voters=1@" + controller, "controller.listener.names=CONTROLLER",
		"listeners=PLAINTEXT://" + address + ",CONTROLLER://" + controller, "advertised.listeners=PLAINTEXT://" + address,
		"log.dirs=" + filepath.Join(dir, "logs"), "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
		"log.retention.bytes=50000000"}, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	classes := textIn(t, filepath.Join(servers, "kafka"), "classpath")
	if out, err := exec.Command(java, "-cp", classes, "kafka.tools.StorageTool", "format", "-t", "3q2-7HFXS3mB4wnNnT9Zow",
		"-c", config).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(java, "-Xmx256m", "-cp", classes, "kafka.Kafka", config)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for range 600 {
		if c, err := net.Dial("tcp4", address); err == nil {
			c.Close()
			return cmd.Process, address
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatal("the broker does not listen")
	return nil, ""
}
