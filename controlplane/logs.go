package main

import (
	"flag"
	"strconv"

	"k8s.io/klog/v2"
)

// setUpLogs sends the log of all parts to standard error: warnings and errors, or
// with a verbosity above 0 everything up to that level.
func setUpLogs(verbosity int) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	threshold := "WARNING"
	if verbosity > 0 {
		threshold = "INFO"
	}
	for _, set := range [][2]string{
		{"logtostderr", "true"},
		{"legacy_stderr_threshold_behavior", "false"},
		{"stderrthreshold", threshold},
		{"v", strconv.Itoa(verbosity)},
	} {
		if err := flags.Set(set[0], set[1]); err != nil {
			return err
		}
	}
	return nil
}
