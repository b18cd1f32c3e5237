//go:build !linux

package usage

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"
)

func of(int) (Usage, error) { return Usage{}, unsupported() }

func resetPeak(int) error { return unsupported() }

func machine() (time.Duration, error) { return 0, unsupported() }

func thread() (time.Duration, error) { return 0, unsupported() }

func run(*exec.Cmd) ([]byte, time.Duration, error) { return nil, 0, unsupported() }

func unsupported() error {
	return fmt.Errorf("the resource usage of processes is not available on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
