package image

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Process is the program of an image, in the terms of a Kubernetes container.
type Process struct {
	// Command replaces the entrypoint and the arguments of the image, and Args replaces its arguments. A nil list
	// replaces nothing.
	Command, Args []string
	// Env are added to the variables of the image, as NAME=VALUE; a variable with the same name is replaced.
	Env []string
	// WorkingDir replaces the working directory unless it is empty.
	WorkingDir string
}

// setProcess changes the program in the configuration, and keeps all other fields.
func (c Config) setProcess(p Process) error {
	inner := map[string]json.RawMessage{}
	if err := c.Get("config", &inner); err != nil {
		return err
	}
	var env []string
	if raw, ok := inner["Env"]; ok {
		if err := json.Unmarshal(raw, &env); err != nil {
			return ErrInvalidImageInput.New(err, "cannot read the variables of the runtime image")
		}
	}
	for _, e := range p.Env {
		name, _, _ := strings.Cut(e, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		env = append(env, e)
	}
	values := map[string]any{}
	if len(p.Command) > 0 {
		values["Entrypoint"], values["Cmd"] = p.Command, p.Args
	} else if len(p.Args) > 0 {
		values["Cmd"] = p.Args
	}
	if len(p.Env) > 0 {
		values["Env"] = env
	}
	if p.WorkingDir != "" {
		values["WorkingDir"] = p.WorkingDir
	}
	for name, value := range values {
		raw, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("cannot write %q of the configuration: %w", name, err)
		}
		inner[name] = raw
	}
	return c.set("config", inner)
}
