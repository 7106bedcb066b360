//go:build tools

// Package tools names helm's command, so that `go mod tidy` keeps what it imports. It is never compiled.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
