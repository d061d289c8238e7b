// Shared code: a proxy for one port of a peer, which prints typed faults.

#pragma once

#include <chrono>
#include <iostream>
#include <string>

#include "Peer.nsmap"
#include "soapPeerProxy.h"

struct Peer : PeerProxy {
    // gSOAP has one proxy class for both ports; the address selects the port.
    // With a folder it calls over TLS: the certificate of INPS is pinned, and host names do not
    // matter. With a caller, calls are in the name of this organisation.
    Peer(const std::string &base, const std::string &port, const char *folder = nullptr,
         const std::string &caller = "")
        : address(base + port) {
        soap_endpoint = address.c_str();
        soap_set_mode(soap, SOAP_C_UTFSTRING);  // strings are UTF-8
        if (!folder) return;
        const std::string inps = std::string(folder) + "/INPS.tls.pem";
        // gSOAP reads the key and the certificate of the caller from one file.
        const std::string own = std::string(folder) + "/" + caller + ".both.pem";
        must(soap_ssl_client_context(
            soap, SOAP_SSL_REQUIRE_SERVER_AUTHENTICATION | SOAP_SSL_SKIP_HOST_CHECK,
            caller.empty() ? nullptr : own.c_str(), nullptr, inps.c_str(), nullptr, nullptr));
    }

    // Returns if a call succeeded. Otherwise prints its fault and ends the program.
    void must(int status) {
        if (status != SOAP_OK) {
            print_fault();
            std::exit(1);
        }
    }

    void print_fault() {
        SOAP_ENV__Detail *detail = soap->fault ? soap->fault->detail : nullptr;
        if (detail && detail->qns__InvalidFault_) {
            print("InvalidFault", *detail->qns__InvalidFault_);
        } else if (detail && detail->qns__RefusedFault_) {
            print("RefusedFault", *detail->qns__RefusedFault_);
        } else if (detail && detail->qns__BusyFault_) {
            print("BusyFault", *detail->qns__BusyFault_);
        } else {
            soap_stream_fault(std::cerr);  // there is no answer, or it cannot be read
        }
    }

  private:
    std::string address;

    template <class Fault> void print(const char *kind, const Fault &fault) {
        std::cout << kind << ": " << fault.problem;
        if (fault.remedy) std::cout << " (" << *fault.remedy << ")";
        std::cout << "\n";
    }
};

// Returns a unique event id.
inline std::string new_id() {
    auto now = std::chrono::system_clock::now().time_since_epoch().count();
    return "cpp-" + std::to_string(now);
}

inline std::string base_of(int argc, char **argv) {
    return argc > 1 ? argv[1] : "http://127.0.0.1:8701/";
}

// Returns the folder with the certificates, or null for plain HTTP.
inline const char *folder_of(int argc, char **argv) {
    return argc > 2 ? argv[2] : nullptr;
}
