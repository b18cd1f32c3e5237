package limit

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// headerTime is the time in which a client must have sent the header of a request.
	headerTime = 10 * time.Second
	// idleTime is the time after which an idle connection is closed.
	idleTime = 2 * time.Minute
	// largestHeader is the maximum size of the header of a request in bytes.
	largestHeader = 64 << 10
	// mostStreams is the maximum number of requests at the same time in a connection of HTTP/2.
	mostStreams = 100
)

// Connections are the open connections of a server. If there are as many as the limit, a new one replaces one without a
// request in progress: the oldest one of the address that has most of them. It is safe for concurrent use.
type Connections struct {
	most int

	mu   sync.Mutex
	open map[*connection]bool
}

// connection is an open connection.
type connection struct {
	net.Conn
	of      *Connections
	address string
	// requests is the number of requests in progress, and idleSince the time at which the last one ended.
	requests  int
	idleSince time.Time
}

func newConnections(most int) *Connections {
	return &Connections{most: most, open: map[*connection]bool{}}
}

type connectionKey struct{}

// configure sets the limits of a server for its connections.
func (c *Connections) configure(s *http.Server) {
	s.ReadHeaderTimeout, s.IdleTimeout, s.MaxHeaderBytes = headerTime, idleTime, largestHeader
	s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: mostStreams}
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if secure, ok := conn.(*tls.Conn); ok {
			conn = secure.NetConn()
		}
		return context.WithValue(ctx, connectionKey{}, conn)
	}
}

// use records that a request uses its connection until done is called.
func (c *Connections) use(ctx context.Context) (done func()) {
	conn, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.requests++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		conn.requests--
		conn.idleSince = time.Now()
	}
}

// listener limits the connections of a listener.
type listener struct {
	net.Listener
	connections *Connections
}

// Accept implements [net.Listener].
func (l listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(accepted.RemoteAddr().String())
	if err != nil {
		host = "" // A listener that is not one of TCP.
	}
	conn := &connection{Conn: accepted, of: l.connections, address: network(host), idleSince: time.Now()}
	for _, replaced := range l.connections.add(conn) {
		_ = replaced.Conn.Close() // The client has no request in progress.
	}
	return conn, nil
}

// add adds a connection, and returns those that it replaces: itself if each of the others has a request in progress.
func (c *Connections) add(conn *connection) (replaced []*connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = true
	for len(c.open) > c.most {
		oldest := c.replaceable()
		delete(c.open, oldest)
		replaced = append(replaced, oldest)
	}
	return replaced
}

// replaceable returns the connection that a new one replaces.
func (c *Connections) replaceable() *connection {
	number, oldest := map[string]int{}, map[string]*connection{}
	var found *connection
	for conn := range c.open {
		if conn.requests > 0 {
			continue
		}
		of := conn.address
		number[of]++
		if oldest[of] == nil || conn.idleSince.Before(oldest[of].idleSince) {
			oldest[of] = conn
		}
	}
	for of, conn := range oldest {
		if found == nil || number[of] > number[found.address] {
			found = conn
		}
	}
	return found
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
