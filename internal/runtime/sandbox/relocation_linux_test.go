package sandbox

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
)

// Programs that listen on the same port run at once: each listens on the port that it was assigned. All other ports are
// as on the machine.
func TestPortsAreRelocated(t *testing.T) {
	if !canRelocate() {
		prerequisite.Missing(t, "the relocation of ports needs Linux 5.6 or later")
	}
	s := newSupervisor(t, nil)
	number := func() int {
		n, err := strconv.Atoi(freePort(t))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// Another process of the machine has the port.
	occupied, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer occupied.Close()
	from := occupied.Addr().(*net.TCPAddr).Port
	for _, tc := range []struct{ name, host string }{{"one", "127.0.0.1"}, {"two", ""}, {"three", "0.0.0.0"}} {
		p := spec(t, tc.name)
		to := number()
		p.Ports = map[int]int{from: to}
		begin(t, s, p)
		if st, _ := s.Status(tc.name); st.Isolation != "namespaces" {
			t.Skipf("requires namespaces: %s", st.Isolation)
		}
		mustAsk(t, p, "listen-tcp", net.JoinHostPort(tc.host, strconv.Itoa(from)))
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", to), 10*time.Second)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		conn.Close()
		// The port is in use now, also for the program.
		if got, err := ask(p, "listen-tcp", net.JoinHostPort(tc.host, strconv.Itoa(from))); err == nil {
			t.Errorf("%s listens twice: %s", tc.name, got)
		}
		other := number()
		mustAsk(t, p, "listen-tcp", fmt.Sprintf("127.0.0.1:%d", other))
		if conn, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", other)); err != nil {
			t.Fatalf("%s: a port that is not relocated: %v", tc.name, err)
		}
		conn.Close()
	}
	// Without relocation, the port is occupied.
	p := spec(t, "four")
	begin(t, s, p)
	if got, err := ask(p, "listen-tcp", fmt.Sprintf("127.0.0.1:%d", from)); err == nil {
		t.Errorf("the port of another process is free: %s", got)
	}
}

// A runtime cannot take the port of another one, which may be starting again.
//
// hardening: H20
func TestPortsOfARuntimeAreReserved(t *testing.T) {
	if !canRelocate() {
		prerequisite.Missing(t, "the relocation of ports needs Linux 5.6 or later")
	}
	s := newSupervisor(t, nil)
	from, reserved := freePort(t), freePort(t)
	thief, owner := spec(t, "thief"), spec(t, "owner")
	begin(t, s, thief)
	if st, _ := s.Status(thief.Name); st.Isolation != "namespaces" {
		t.Skipf("requires namespaces: %s", st.Isolation)
	}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	owner.Ports = map[int]int{number(from): number(reserved)}
	begin(t, s, owner)
	for _, host := range []string{"127.0.0.1", "", "::1"} {
		if _, err := ask(thief, "listen-tcp", net.JoinHostPort(host, reserved)); err == nil ||
			!strings.Contains(err.Error(), "address already in use") {
			t.Errorf("on %q, another runtime gets the port: %v", host, err)
		}
	}
	mustAsk(t, owner, "listen-tcp", "127.0.0.1:"+from)
	if err := s.Stop(t.Context(), owner.Name); err != nil {
		t.Fatal(err)
	}
	mustAsk(t, thief, "listen-tcp", "127.0.0.1:"+reserved)
}

// Signals to a thread do not make its bind calls fail, such as those with which Go interrupts goroutines.
func TestRelocationWithSignals(t *testing.T) {
	if !isKernel(5, 19) {
		prerequisite.Missing(t, "calls that no signal interrupts need Linux 5.19 or later")
	}
	s := newSupervisor(t, nil)
	p := spec(t, "signalled")
	from, to := freePort(t), freePort(t)
	p.Ports = map[int]int{}
	if a, err := strconv.Atoi(from); err == nil {
		if p.Ports[a], err = strconv.Atoi(to); err != nil {
			t.Fatal(err)
		}
	}
	begin(t, s, p)
	if st, _ := s.Status(p.Name); st.Isolation != "namespaces" {
		t.Skipf("requires namespaces: %s", st.Isolation)
	}
	mustAsk(t, p, "listen-interrupted", "127.0.0.1:"+from)
}
