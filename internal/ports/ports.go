// Package ports allocates TCP ports that a restarted server can bind again.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Lowest and Highest bound the allocated ports. They are below the ephemeral ports (from
// 32768 on with Linux) and the node ports of Services (from 30000 on): while the server
// restarts, the system does not assign the port to another process.
const (
	Lowest  = 20000
	Highest = 29999
)

// tries is far more than are ever needed: nearly all of the ports would have to be taken.
const tries = 1000

// Listen listens on a port that was free, of the addresses of a host; of all addresses
// when that is empty.
func Listen(host string) (net.Listener, error) {
	for range tries {
		port := Lowest + rand.IntN(Highest-Lowest+1)
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
	}
	return nil, fmt.Errorf("none of %d ports from %d to %d is free", tries, Lowest, Highest)
}
