package call

import (
	"net"
	"strconv"
	"strings"
)

// DefaultTarget is the address of a function that its developer runs.
const DefaultTarget = "localhost:9443"

// address returns the host and port of a gRPC target. Only addresses of TCP are supported.
func address(target string) (string, error) {
	rest := target
	for _, scheme := range []string{"dns:", "passthrough:"} {
		if after, ok := strings.CutPrefix(target, scheme); ok {
			// dns:HOST:PORT and dns:///HOST:PORT; an authority between the slashes would be the address of a name server.
			rest = strings.TrimPrefix(after, "///")
			break
		}
	}
	host, port, err := net.SplitHostPort(rest)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || host == "" || strings.Contains(host, "/") {
		return "", ErrFunctionTarget.New(err, "the address %q of a function is not valid", target)
	}
	return net.JoinHostPort(host, port), nil
}
