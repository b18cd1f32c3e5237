package up

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"

	"github.com/xpkg-dev/xpkg/internal/ports"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// The default ports of "xpkg up".
const (
	defaultPort         = 16443
	defaultRegistryPort = 15000
	// LastPort stands for the port of the last start, or for the default port in a
	// new data directory.
	LastPort = -1
)

const (
	// apiPortName is the file with the port of the API server, which the child writes.
	apiPortName      = "apiserver.port"
	registryPortName = "registry.port"
	loopback         = "127.0.0.1"
)

// openPorts checks that the ports are free before anything is started, opens the port of the
// registry, and returns the port of the API server. If that is 0, the child chooses a free one. The
// port of an earlier start is never replaced by another one, because kubeconfigs and installed
// packages refer to it.
func openPorts(o Options, d *datadir.Dir) (net.Listener, int, error) {
	port, known := chosenPort(d, o.Port, apiPortName, defaultPort)
	if port != 0 {
		probe, err := listen(port, "the API server", "--port")
		if err != nil {
			return nil, 0, keptPort(err, known, "kubeconfigs", "--port")
		}
		if err := probe.Close(); err != nil {
			return nil, 0, err
		}
	}
	registryPort, known := chosenPort(d, o.RegistryPort, registryPortName, defaultRegistryPort)
	if known != 0 && known != registryPort {
		o.Progress(Event{Stage: StageRegistry, Warning: fmt.Sprintf(
			"the registry moves from %[1]s:%[2]d to %[1]s:%[3]d; packages that were installed from %[1]s:%[2]d cannot be fetched there any more. "+
				"Start with --registry-port %[2]d to keep the address", loopback, known, registryPort)})
	}
	listener, err := openRegistryPort(d, registryPort)
	return listener, port, keptPort(err, known, "installed packages", "--registry-port")
}

// chosenPort returns the port for a start, where 0 means any free port, and the port of the last
// start, or 0 if there is none.
func chosenPort(d *datadir.Dir, requested int, name string, standard int) (port, known int) {
	known = lastPort(d, name)
	switch {
	case requested > 0:
		return requested, known
	case known != 0:
		return known, known
	case requested == LastPort:
		return standard, 0
	}
	return 0, 0
}

// keptPort adds to the error of a port that the port is known from an earlier start, and to whom.
func keptPort(err error, known int, who, flag string) error {
	if err == nil || known == 0 {
		return err
	}
	f := errcode.From(err)
	address := net.JoinHostPort(loopback, strconv.Itoa(known))
	return f.Code.New(f.Why, "%s", f.What).WithDo(
		"Stop the program that listens on %s and run the same command again: %s name this address since an earlier start. "+
			"To use another port, set %s.", address, who, flag)
}

func openRegistryPort(d *datadir.Dir, port int) (net.Listener, error) {
	listener, err := listen(port, "the registry", "--registry-port")
	if err != nil {
		return nil, err
	}
	port = listener.Addr().(*net.TCPAddr).Port
	if err := datadir.WriteFile(d.File(registryPortName), []byte(strconv.Itoa(port)+"\n")); err != nil {
		return nil, errors.Join(ErrDataDirUnusable.New(err, "cannot remember the port of the registry"), listener.Close())
	}
	return listener, nil
}

// listen opens a port of the loopback interface. Its error names the part that needs the
// port, and the flag that selects another one.
func listen(port int, who, flag string) (net.Listener, error) {
	address := net.JoinHostPort(loopback, strconv.Itoa(port))
	if port == 0 {
		return anyPort(who, flag)
	}
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, ErrPortInUse.New(nil, "port %d, which %s needs, is used by another program", port, who).
			WithDo("Stop the program that listens on %s, or choose another port with %s.", address, flag)
	}
	if err != nil {
		return nil, ErrPortInUse.New(err, "cannot open port %d, which %s needs", port, who).
			WithDo("Choose another port with %s.", flag)
	}
	return listener, nil
}

// anyPort opens a free port.
func anyPort(who, flag string) (net.Listener, error) {
	listener, err := ports.Listen(loopback)
	if err != nil {
		return nil, ErrPortInUse.New(err, "cannot open a port, which %s needs", who).WithDo("Choose one with %s.", flag)
	}
	return listener, nil
}

// lastPort returns the port in a file of the directory, or 0 if the file is missing or damaged.
func lastPort(d *datadir.Dir, name string) int {
	content, err := os.ReadFile(d.File(name))
	if err != nil {
		return 0
	}
	last, err := strconv.ParseUint(strings.TrimSpace(string(content)), 10, 16)
	if err != nil {
		return 0
	}
	return int(last)
}
