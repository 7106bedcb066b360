// Command multicall is every Kubernetes program of the test cluster in one binary.
//
// The programs share nearly all of their code, so one binary compiles and links faster than six and is
// a fifth of their size. It runs the program that it is called as: cluster.py lays a symbolic link for
// each name beside it.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // CronJobs may name a time zone, and a slim host may have none.

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// A program's command is built only when it is called: building one registers flags and feature gates
// for the whole process, and two programs would collide.
var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-proxy":              proxy.NewProxyCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "kubectl" {
		runKubectl()
		return
	}
	build, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "multicall: called as %q. Call it through a symbolic link named kubectl, kubelet, "+
			"kube-apiserver, kube-controller-manager, kube-proxy or kube-scheduler.\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(build()))
}

// runKubectl reports errors in kubectl's own way: the generic runner prints the usage with each of them.
func runKubectl() {
	// A bad -v is reported when the command parses its flags, so it is no error here.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
