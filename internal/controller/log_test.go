package controller

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

func TestUntilDone(t *testing.T) {
	var out bytes.Buffer
	done := make(chan struct{})
	log := logr.FromSlogHandler(untilDone{slog.NewTextHandler(&out, nil), done}).V(1).WithName("library").WithValues("a", "b")
	log.Info("detail")
	log.Error(errors.New("broken"), "before the stop")
	close(done)
	log.Error(errors.New("broken"), "after the stop")
	got := out.String()
	if strings.Contains(got, "detail") || strings.Contains(got, "after the stop") || !strings.Contains(got, "before the stop") {
		t.Errorf("logged:\n%s", got)
	}
	if !strings.Contains(got, "a=b") || !strings.Contains(got, "logger=library") {
		t.Errorf("attributes are lost:\n%s", got)
	}
}
