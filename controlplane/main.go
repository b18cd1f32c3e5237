// Command xpkg-controlplane is a Kubernetes control plane in one process: etcd,
// kube-apiserver and the controllers that packages need. "xpkg up" starts it and
// the tests do; it has a module and a program of its own, so that nothing else has
// to import, build or ship Kubernetes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	etcd "go.etcd.io/etcd/api/v3/version"

	"github.com/xpkg-dev/xpkg/controlplane/internal/heapgrowth"
	"github.com/xpkg-dev/xpkg/controlplane/internal/report"
	"github.com/xpkg-dev/xpkg/controlplane/internal/settings"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	s, err := settings.Parse(args, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return fail(err, false)
	case s.Version:
		fmt.Printf("xpkg-controlplane: Kubernetes %s, etcd %s\n", version.Get().GitVersion, etcd.Version)
		return 0
	}
	// The process that reads the log may have ended: a failed write must not end this process before its state is safe.
	signal.Ignore(syscall.SIGPIPE)
	if err := setUpLogs(s.Verbosity); err != nil {
		return fail(err, false)
	}
	defer klog.Flush()
	heapgrowth.Start()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if !s.Stay {
		ctx = untilEOF(ctx, os.Stdin)
	}
	announced := false
	err = serve(ctx, s, func(r report.Ready) error {
		announced = true
		return report.WriteReady(os.Stdout, r)
	}, func() error { return report.WriteHealthy(os.Stdout) })
	if err != nil {
		return fail(err, announced)
	}
	if !announced {
		fmt.Fprintln(
			os.Stderr, "xpkg-controlplane: stopped before it was ready; without --stay it stops when its standard input ends",
		)
	}
	return 0
}

// fail reports the reason on standard output if the parent process still waits for its line, and always in the log.
func fail(err error, announced bool) int {
	fmt.Fprintf(os.Stderr, "xpkg-controlplane: %v\n", err)
	if !announced {
		if err := report.WriteError(os.Stdout, err); err != nil {
			fmt.Fprintf(os.Stderr, "xpkg-controlplane: cannot report: %v\n", err)
		}
	}
	return 1
}

// untilEOF returns a context that is canceled at the end of the input. The parent process holds the other end of that
// pipe, so this process stops even if the parent is killed.
func untilEOF(ctx context.Context, input io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		// An input that cannot be read is as good as one that ended.
		_, _ = io.Copy(io.Discard, input)
	}()
	return ctx
}
