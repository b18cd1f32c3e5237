package limit

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"pgregory.net/rapid"
)

// TestLimitsLeaveDescriptors finds no process whose clients can use all its descriptors: each connection, request and
// upload uses at most one.
func TestLimitsLeaveDescriptors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := rapid.Uint64Range(256, 1<<32).Draw(t, "files")
		l := For(files, rapid.Uint64Range(0, 1<<50).Draw(t, "memory"), rapid.IntRange(1, 1024).Draw(t, "processors"))
		if used := uint64(l.Connections + l.Requests + l.Uploads); used > files*3/4 {
			t.Errorf("clients can use %d of %d descriptors", used, files)
		}
		if l.Connections <= l.Requests {
			t.Errorf("%d requests can use all %d connections", l.Requests, l.Connections)
		}
		if l.Manifests > l.Requests || l.Work > 2*l.Requests {
			t.Errorf("a kind of requests has a higher limit than all: %+v", l)
		}
	})
}

// TestTheGuideStatesTheLimits compares the table in the guide with the limits.
func TestTheGuideStatesTheLimits(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "run-a-registry.md"))
	if err != nil {
		t.Fatal(err)
	}
	l := For(1<<20, 16<<30, 8)
	print := message.NewPrinter(language.English)
	for things, most := range map[string]int{
		"requests in progress": l.Requests, "pushes of manifests": l.Manifests, "searches, pages": l.Work,
		"unfinished uploads":             l.Uploads,
		"repositories without a version": l.Repositories, "connections": l.Connections,
	} {
		row := ""
		for line := range strings.Lines(string(guide)) {
			if strings.HasPrefix(line, "| "+things) {
				row = line
			}
		}
		want := print.Sprintf("| %d | %d |", OfClient(most), most)
		if things == "connections" {
			want = print.Sprintf("| %d |", most)
		}
		if !strings.Contains(row, want) {
			t.Errorf("the guide has %q for %s, want %q", row, things, want)
		}
	}
}

// TestNobodyTakesTheShareOfAnother admits and ends requests of clients in any order. A user with nothing is always
// admitted until others with credentials have three quarters, and no level exceeds its limit.
func TestNobodyTakesTheShareOfAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(4, 40).Draw(t, "most")
		g := NewGate(most, "requests")
		held := map[Client][]func(){}
		total, anonymous := 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				c := User(fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "user")))
				c.IsAnonymous = rapid.Bool().Draw(t, "anonymous")
				c.Key += fmt.Sprint(c.IsAnonymous)
				leave, refused := g.Enter(c)
				wants := len(held[c]) < OfClient(most) && total < most && (!c.IsAnonymous || anonymous < OfAnonymous(most))
				if (refused == nil) != wants {
					t.Fatalf("%+v with %d, of %d and %d anonymous: %v", c, len(held[c]), total, anonymous, refused)
				}
				if refused != nil {
					if isOwn := len(held[c]) >= OfClient(most); isOwn != (refused.Status() == http.StatusTooManyRequests) {
						t.Fatalf("%v has the status %d", refused, refused.Status())
					}
					return
				}
				held[c] = append(held[c], leave)
				total++
				if c.IsAnonymous {
					anonymous++
				}
			},
			"leave": func(*rapid.T) {
				for c, leaves := range held {
					if len(leaves) == 0 {
						continue
					}
					leaves[0]()
					leaves[0]() // It has an effect once.
					held[c] = leaves[1:]
					total--
					if c.IsAnonymous {
						anonymous--
					}
					return
				}
			},
		})
	})
}

// TestARequestWaitsForOthers admits a request when another one ends, and refuses it when its time ends.
func TestARequestWaitsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(4, "requests")
		c := User("alice")
		first, refused := g.Enter(c)
		if refused != nil {
			t.Fatal(refused)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, refused := g.Wait(ctx, c); refused == nil {
			t.Error("a second request is admitted")
		}
		admitted := make(chan *Refusal)
		go func() {
			_, refused := g.Wait(t.Context(), c)
			admitted <- refused
		}()
		synctest.Wait()
		first()
		if refused := <-admitted; refused != nil {
			t.Error(refused)
		}
	})
}

// TestIdleEntriesMakeRoom replaces the oldest idle upload of the client itself, and never one in use or that of another
// client.
func TestIdleEntriesMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewTable(8, "uploads", time.Minute)
		alice, bob := User("alice"), User("bob")
		use := func(c Client, key string, isUsed bool) (removed []string, refused *Refusal) {
			e, _, removed, refused := table.Use(c, key)
			if refused == nil && !isUsed {
				table.Done(e)
			}
			time.Sleep(time.Millisecond) // The times of two entries differ.
			return removed, refused
		}
		for _, first := range []struct {
			client Client
			key    string
			isUsed bool
		}{{bob, "b", false}, {alice, "used", true}, {alice, "idle", false}} {
			if _, refused := use(first.client, first.key, first.isUsed); refused != nil {
				t.Fatalf("the upload %s: %v", first.key, refused)
			}
		}
		if _, refused := use(alice, "third", false); refused == nil || refused.Status() != http.StatusTooManyRequests {
			t.Fatalf("a third upload at once: %v", refused)
		}
		time.Sleep(time.Minute)
		if removed, refused := use(alice, "third", true); refused != nil || strings.Join(removed, " ") != "idle" {
			t.Errorf("a third upload after a minute: %v, %v", removed, refused)
		}
		time.Sleep(time.Minute)
		if removed, refused := use(alice, "fourth", true); refused == nil || len(removed) > 0 {
			t.Errorf("an upload beside two that are used: %v, %v", removed, refused)
		}
		time.Sleep(entryLife)
		if removed, _ := use(bob, "b2", false); strings.Join(removed, " ") != "b" || table.Len() != 3 {
			t.Errorf("uploads that were forgotten: %v, %d remain", removed, table.Len())
		}
	})
}

// TestUploadsLeaveAReserve gives a client half of the space of the disk without its reserve.
func TestUploadsLeaveAReserve(t *testing.T) {
	const size = 10 << 30
	s := space{size: size, free: size, files: 1000, freeFiles: 500}
	disk := &Disk{Dir: "/", free: func(string) (space, error) { return s, nil }}
	table := NewTable(8, "uploads", time.Minute)
	e, _, _, refused := table.Use(User("alice"), "a")
	if refused != nil {
		t.Fatal(refused)
	}
	const room = size - size/20
	if disk.Room() != room {
		t.Errorf("the room is %d, want %d", disk.Room(), room)
	}
	if refused := table.CheckRoom(e, room/2, disk.Room()); refused != nil {
		t.Error(refused)
	}
	if refused := table.CheckRoom(e, room/2+1, disk.Room()); refused == nil ||
		refused.Status() != http.StatusTooManyRequests {
		t.Errorf("more than half of the room: %v", refused)
	}
	table.Grow(e, room/2)
	s.free -= room / 2
	if refused := table.CheckRoom(e, 1, disk.Room()); refused == nil {
		t.Error("the space that the client uses does not count")
	}
	s.free = size / 20
	if refused := disk.Check(); refused == nil || refused.Status() != http.StatusServiceUnavailable {
		t.Errorf("a disk without room: %v", refused)
	}
	s.free, s.freeFiles = size, 10
	if disk.Check() == nil {
		t.Error("a disk without files has room")
	}
}

// TestClientsWithoutCredentials tells clients apart by their networks.
func TestClientsWithoutCredentials(t *testing.T) {
	for _, c := range []struct {
		remote, forwarded string
		isBehindProxy     bool
		want              string
	}{
		{"192.0.2.1:80", "", false, "192.0.2.1"},
		{"192.0.2.1:80", "198.51.100.7", false, "192.0.2.1"},
		{"192.0.2.1:80", "203.0.113.9, 198.51.100.7", true, "198.51.100.7"},
		{"[2001:db8:1:2:3::4]:80", "", false, "2001:db8:1:2::/64"},
		{"[::ffff:192.0.2.1]:80", "", false, "192.0.2.1"},
		{"[fe80::1%eth0]:80", "", false, "fe80::/64"},
		{"@", "", false, "unknown"},
		{"192.0.2.1:80", "no address", true, "unknown"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = c.remote
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := Address(r, c.isBehindProxy); got.Key != "address "+c.want || !got.IsAnonymous {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// TestANewConnectionReplacesAnIdleOne replaces the oldest connection without a request of the address that has most of
// them.
func TestANewConnectionReplacesAnIdleOne(t *testing.T) {
	c := newConnections(4)
	at := time.Now()
	add := func(address string, age time.Duration) (conn *connection, replaced []*connection) {
		mine, other := net.Pipe()
		t.Cleanup(func() { _, _ = mine.Close(), other.Close() })
		conn = &connection{Conn: mine, of: c, address: address, idleSince: at.Add(-age)}
		return conn, c.add(conn)
	}
	add("a", time.Hour)
	add("b", time.Minute)
	oldest, _ := add("b", 3*time.Minute)
	second, _ := add("b", 2*time.Minute)
	done := c.use(context.WithValue(t.Context(), connectionKey{}, oldest))
	if _, replaced := add("c", 0); len(replaced) != 1 || replaced[0] != second {
		t.Errorf("replaced %+v", replaced)
	}
	done()
	if err := oldest.Close(); err != nil || len(c.open) != 3 {
		t.Errorf("%d connections are open, %v", len(c.open), err)
	}
}
