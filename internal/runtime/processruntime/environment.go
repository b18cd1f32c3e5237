package processruntime

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fields returns the metadata of a pod, by the paths of field references.
func (p *Runtime) fields(pod corev1.PodTemplateSpec, name string, uid string) map[string]string {
	out := map[string]string{
		"metadata.name": name, "metadata.namespace": p.opts.Namespace, "metadata.uid": uid,
		"spec.serviceAccountName": pod.Spec.ServiceAccountName, "spec.nodeName": "localhost",
		"status.podIP": "127.0.0.1", "status.hostIP": "127.0.0.1", "status.podIPs": "127.0.0.1",
		"status.hostIPs": "127.0.0.1",
	}
	for key, value := range pod.Labels {
		out["metadata.labels['"+key+"']"] = value
	}
	for key, value := range pod.Annotations {
		out["metadata.annotations['"+key+"']"] = value
	}
	return out
}

// environment returns the variables of a container as a node does: the variables in every, then
// those of envFrom, and then those of env, each expanded with the variables before it. It fails
// with missing if an object or a key does not exist yet.
func (p *Runtime) environment(
	ctx context.Context, c corev1.Container, fields, every map[string]string,
) (map[string]string, error) {
	out := maps.Clone(every)
	for _, from := range c.EnvFrom {
		values, err := p.envFrom(ctx, from)
		if err != nil {
			return nil, err
		}
		for key, value := range values {
			out[from.Prefix+key] = value
		}
	}
	for _, e := range c.Env {
		value, set, err := p.valueOf(ctx, e, fields, out)
		if err != nil {
			return nil, err
		}
		if set {
			out[e.Name] = value
		}
	}
	return out, nil
}

func (p *Runtime) valueOf(
	ctx context.Context, e corev1.EnvVar, fields, before map[string]string,
) (value string, set bool, err error) {
	from := e.ValueFrom
	switch {
	case from == nil:
		return expand(e.Value, before), true, nil
	case from.FieldRef != nil:
		// A missing label or annotation has an empty value.
		return fields[from.FieldRef.FieldPath], true, nil
	case from.SecretKeyRef != nil:
		r := from.SecretKeyRef
		return pick(p.secret, ctx, r.Name, r.Key, r.Optional, e.Name)
	case from.ConfigMapKeyRef != nil:
		r := from.ConfigMapKeyRef
		return pick(p.configMap, ctx, r.Name, r.Key, r.Optional, e.Name)
	}
	return "", false, nil // CheckProcess refuses other sources.
}

// reading reads the values of an object by their keys. Found is false if the object does not exist.
type reading func(ctx context.Context, name string) (values map[string]string, found bool, err error)

func pick(read reading, ctx context.Context, name, key string, optional *bool, variable string) (string, bool, error) {
	values, _, err := read(ctx, name)
	if err != nil {
		return "", false, err
	}
	if value, ok := values[key]; ok {
		return value, true, nil
	}
	if optional != nil && *optional {
		return "", false, nil
	}
	return "", false,
		missing("the variable " + variable + " needs the key " + key + " of " + name + ", which does not exist yet")
}

func (p *Runtime) envFrom(ctx context.Context, from corev1.EnvFromSource) (map[string]string, error) {
	var values map[string]string
	var found bool
	var err error
	var name string
	var optional *bool
	switch {
	case from.SecretRef != nil:
		name, optional = from.SecretRef.Name, from.SecretRef.Optional
		values, found, err = p.secret(ctx, name)
	case from.ConfigMapRef != nil:
		name, optional = from.ConfigMapRef.Name, from.ConfigMapRef.Optional
		values, found, err = p.configMap(ctx, name)
	}
	if err != nil || found || optional != nil && *optional {
		return values, err
	}
	return nil, missing("the environment of the runtime needs " + name + ", which does not exist yet")
}

func (p *Runtime) secret(ctx context.Context, name string) (map[string]string, bool, error) {
	s := &corev1.Secret{}
	found, err := p.get(ctx, name, s)
	out := map[string]string{}
	for key, value := range s.Data {
		out[key] = string(value)
	}
	return out, found, err
}

func (p *Runtime) configMap(ctx context.Context, name string) (map[string]string, bool, error) {
	c := &corev1.ConfigMap{}
	found, err := p.get(ctx, name, c)
	out := maps.Clone(c.Data)
	if out == nil {
		out = map[string]string{}
	}
	for key, value := range c.BinaryData {
		out[key] = string(value)
	}
	return out, found, err
}

func (p *Runtime) get(ctx context.Context, name string, o client.Object) (found bool, err error) {
	err = p.opts.Client.Get(ctx, client.ObjectKey{Namespace: p.opts.Namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	return true, nil
}

// expand replaces references such as $(NAME) with the values of variables, as Kubernetes does:
// unknown references stay, and $$ stands for a dollar sign.
func expand(s string, variables map[string]string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			out.WriteByte(s[i])
			continue
		}
		end := -1
		if s[i+1] == '(' {
			end = strings.IndexByte(s[i+1:], ')')
		}
		switch {
		case s[i+1] == '$':
			out.WriteByte('$')
			i++
		case end < 0:
			out.WriteByte('$')
		default:
			name := s[i+2 : i+1+end]
			if value, ok := variables[name]; ok {
				out.WriteString(value)
			} else {
				out.WriteString("$(" + name + ")")
			}
			i += end + 1
		}
	}
	return out.String()
}

func expandAll(all []string, variables map[string]string) []string {
	out := slices.Clone(all)
	for i := range out {
		out[i] = expand(out[i], variables)
	}
	return out
}
