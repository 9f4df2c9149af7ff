import PushModel

/// A dissector of the protocol for Wireshark, in Lua, made from the tables of this module.
///
/// It shows frames with their items, error responses and feedback tuples, in clear or within TLS that Wireshark decrypts.
/// It puts records together that segments cut, and has a field for each value to filter by. Fates are left to `decode`,
/// because they depend on what follows.
package enum WiresharkDissector {
  private typealias Offsets = BinaryFrame.Offsets

  /// The text of the dissector.
  ///
  /// - Parameters:
  ///   - program: the program that writes it, for its first lines.
  ///   - gatewayPorts: the default of a preference of the dissector.
  ///   - feedbackPorts: likewise.
  package static func lua(program: String, gatewayPorts: [UInt16], feedbackPorts: [UInt16]) -> String {
    let limits = ProtocolLimits()
    return """
      -- Dissects Apple's binary provider protocol in Wireshark and tshark: gateway and feedback service, in clear or
      -- within TLS that Wireshark can decrypt.
      -- Written by \(program). To install it, save it in the folder of personal Lua plugins, which Wireshark names under
      -- Help, About Wireshark, Folders; or, for once: tshark -X lua_script:apns.lua

      local commands = \(table(commands))
      local items = \(table(items.map { (Int($0.id.rawValue), $0.name) }))
      local statuses = \(table(statuses))
      -- The length of items that have one.
      local item_lengths = \(table(itemLengths))
      -- Offsets in frames, from the command.
      local token_length_at = \(table(tokenLengthOffsets))
      local identifier_at, expiration_at = \(Offsets.identifier), \(Offsets.expiration)
      local frame_length_at, items_at = \(Offsets.frameLength), \(Offsets.items)
      local item_header, tuple_header = \(FrameItem.headerLength), \(FeedbackTuple.headerLength)
      local response_length, response_command = \(ErrorResponse.length), \(ErrorResponse.documentedCommand)
      -- Lengths above which bytes are no record.
      local longest_frame, longest_token = \(limits.maximumFrameLength), \(limits.maximumTokenLength)
      local longest_payload = \(limits.maximumPayloadLength)
      -- Times and tokens by which a tuple is known on any port.
      local earliest, latest = \(FeedbackGrammar.credibleTimes.lowerBound), \(FeedbackGrammar.credibleTimes.upperBound)
      local usual_token = \(DeviceToken.usualLength)

      local apns = Proto("apns", "Apple Push Notification service, binary provider protocol")

      local f = {
        command = ProtoField.uint8("apns.command", "Command", base.DEC, commands),
        frame_length = ProtoField.uint32("apns.frame_length", "Frame length"),
        item = ProtoField.uint8("apns.item", "Item", base.DEC, items),
        item_length = ProtoField.uint16("apns.item_length", "Item length"),
        item_data = ProtoField.bytes("apns.item_data", "Item data"),
        identifier = ProtoField.uint32("apns.identifier", "Identifier"),
        expiration = ProtoField.absolute_time("apns.expiration", "Expiration", base.UTC),
        priority = ProtoField.uint8("apns.priority", "Priority"),
        token_length = ProtoField.uint16("apns.token_length", "Token length"),
        token = ProtoField.bytes("apns.token", "Device token", base.NONE),
        payload_length = ProtoField.uint16("apns.payload_length", "Payload length"),
        payload = ProtoField.string("apns.payload", "Payload", base.UNICODE),
        status = ProtoField.uint8("apns.status", "Status", base.DEC, statuses),
        timestamp = ProtoField.absolute_time("apns.feedback.timestamp", "Uninstalled", base.UTC),
        malformed = ProtoField.string("apns.malformed", "Malformed"),
      }
      apns.fields = f

      local rejected = ProtoExpert.new(
        "apns.rejected", "Error response", expert.group.RESPONSE_CODE, expert.severity.WARN)
      local damaged = ProtoExpert.new(
        "apns.damaged", "Not a record of the protocol", expert.group.MALFORMED, expert.severity.ERROR)
      apns.experts = { rejected, damaged }

      apns.prefs.gateway_ports = Pref.range(
        "Gateway ports", "\(ports(gatewayPorts))", "TCP ports of gateways, in clear or within TLS", 65535)
      apns.prefs.feedback_ports = Pref.range(
        "Feedback ports", "\(ports(feedbackPorts))", "TCP ports of feedback services, in clear or within TLS", 65535)

      local tcp_stream = Field.new("tcp.stream")
      -- By TCP stream: the client's port and the service, where the ports do not tell them, and whether it is TLS.
      local clients, services, secured = {}, {}, {}
      function apns.init() clients, services, secured = {}, {}, {} end

      -- The length of a record, or how many bytes are needed to tell; or nil and why it is none.
      local function frame_extent(bytes)
        local available = bytes:len()
        local command = bytes(0, 1):uint()
        if command == 2 then
          if available < items_at then return nil, nil, items_at end
          local length = bytes(frame_length_at, 4):uint()
          if length > longest_frame then return nil, "frame length " .. length .. " is over the limit" end
          return items_at + length
        end
        local at = token_length_at[command]
        if not at then return nil, "unknown command " .. command end
        if available < at + 2 then return nil, nil, at + 2 end
        local token = bytes(at, 2):uint()
        if token > longest_token then return nil, "token length " .. token .. " is over the limit" end
        local payload_at = at + 2 + token
        if available < payload_at + 2 then return nil, nil, payload_at + 2 end
        local payload = bytes(payload_at, 2):uint()
        if payload > longest_payload then return nil, "payload length " .. payload .. " is over the limit" end
        if command == 0 and token == 0 and payload == 0 then return nil, "command 0 with neither token nor payload" end
        return payload_at + 2 + payload
      end

      local function response_extent(bytes)
        if bytes(0, 1):uint() ~= response_command then
          return nil, "unknown response command " .. bytes(0, 1):uint()
        end
        return response_length
      end

      local function tuple_extent(bytes)
        if bytes:len() < tuple_header then return nil, nil, tuple_header end
        local token = bytes(4, 2):uint()
        if token > longest_token then return nil, "token length " .. token .. " is over the limit" end
        return tuple_header + token
      end

      local function add_token(tree, length, token)
        tree:add(f.token_length, length)
        if token then tree:add(f.token, token) end
      end

      local function part(bytes, at, length)
        if length > 0 then return bytes(at, length) end
      end

      local function add_payload(tree, length, payload)
        tree:add(f.payload_length, length)
        if payload then tree:add(f.payload, payload, payload:string(ENC_UTF_8)) end
      end

      local function show_item(bytes, at, length, id, tree)
        local data = part(bytes, at + item_header, length)
        local title = "Item: " .. (items[id] or "unknown") .. " (" .. id .. ")"
        local item = tree:add(apns, bytes(at, item_header + length), title)
        item:add(f.item, bytes(at, 1))
        item:add(f.item_length, bytes(at + 1, 2))
        if not items[id] or (item_lengths[id] and item_lengths[id] ~= length) then
          if data then item:add(f.item_data, data) end
        elseif id == 1 then
          add_token(item, bytes(at + 1, 2), data)
        elseif id == 2 then
          add_payload(item, bytes(at + 1, 2), data)
        elseif id == 3 then
          item:add(f.identifier, data)
          return data:uint()
        elseif id == 4 then
          item:add(f.expiration, data)
        elseif id == 5 then
          item:add(f.priority, data)
        end
      end

      local function show_frame(bytes, tree)
        local command = bytes(0, 1):uint()
        local identifier
        local frame = tree:add(apns, bytes(), "Notification")
        frame:add(f.command, bytes(0, 1))
        if command == 2 then
          frame:add(f.frame_length, bytes(frame_length_at, 4))
          local at = items_at
          while at < bytes:len() do
            if bytes:len() - at < item_header then
              frame:add(f.malformed, bytes(at), "item header cut short by the end of its frame")
                :add_proto_expert_info(damaged)
              break
            end
            local id, length = bytes(at, 1):uint(), bytes(at + 1, 2):uint()
            if bytes:len() - at - item_header < length then
              frame:add(f.malformed, bytes(at), "item " .. id .. " of length " .. length .. " overruns its frame")
                :add_proto_expert_info(damaged)
              break
            end
            identifier = show_item(bytes, at, length, id, frame) or identifier
            at = at + item_header + length
          end
        else
          if command == 1 then
            identifier = bytes(identifier_at, 4):uint()
            frame:add(f.identifier, bytes(identifier_at, 4))
            frame:add(f.expiration, bytes(expiration_at, 4))
          end
          local at = token_length_at[command]
          local token = bytes(at, 2):uint()
          add_token(frame, bytes(at, 2), part(bytes, at + 2, token))
          at = at + 2 + token
          local payload = bytes(at, 2):uint()
          add_payload(frame, bytes(at, 2), part(bytes, at + 2, payload))
        end
        local text = identifier and "Notification " .. identifier or "Notification"
        frame:set_text(text .. ", command " .. command)
        return text
      end

      local function show_response(bytes, tree)
        local status, identifier = bytes(1, 1):uint(), bytes(2, 4):uint()
        local text = "Error response " .. status .. " (" .. (statuses[status] or "unknown") .. ") to " .. identifier
        local response = tree:add(apns, bytes(), text)
        response:add(f.command, bytes(0, 1))
        response:add(f.status, bytes(1, 1)):add_proto_expert_info(rejected, text)
        response:add(f.identifier, bytes(2, 4))
        return text
      end

      local function show_tuple(bytes, tree)
        local tuple = tree:add(apns, bytes(), "Feedback tuple")
        tuple:add(f.timestamp, bytes(0, 4))
        local token = bytes(4, 2):uint()
        add_token(tuple, bytes(4, 2), part(bytes, tuple_header, token))
        return "Feedback tuple"
      end

      -- Shows records one after the other, and asks for more bytes when the last one is cut.
      local function dissect(bytes, info, root, extent, show)
        local tree = root:add(apns, bytes())
        local shown, last = 0, nil
        local at = 0
        info.cols.protocol = "APNs"
        while at < bytes:len() do
          local rest = bytes(at):tvb()
          local length, problem, needed = extent(rest)
          if problem then
            tree:add(f.malformed, rest(), problem):add_proto_expert_info(damaged, problem)
            last = "malformed: " .. problem
            shown = shown + 1
            break
          end
          if not length or length > rest:len() then
            info.desegment_offset = at
            -- How much is told only where it is known: else TCP hands out what it has each time.
            info.desegment_len = length and length - rest:len() or needed and DESEGMENT_ONE_MORE_SEGMENT
            at = bytes:len()
            break
          end
          last = show(rest(0, length):tvb(), tree)
          shown = shown + 1
          at = at + length
        end
        if shown == 1 then info.cols.info = last end
        if shown > 1 then info.cols.info = shown .. " records, the last: " .. last end
        return bytes:len()
      end

      -- "1-5,7" as the preferences have it.
      local function has(range, port)
        for from, to in string.gmatch(range, "(%d+)%-?(%d*)") do
          if tonumber(from) <= port and port <= tonumber(to == "" and from or to) then return true end
        end
        return false
      end

      local gateway, feedback = 1, 2

      -- The service of the connection, and whether the bytes are the client's.
      local function role(info)
        local prefs, stream = apns.prefs, tcp_stream()
        local client = stream and clients[stream.value]
        if client then return services[stream.value], info.src_port == client end
        if has(prefs.gateway_ports, info.dst_port) then return gateway, true end
        if has(prefs.gateway_ports, info.src_port) then return gateway, false end
        if has(prefs.feedback_ports, info.dst_port) then return feedback, true end
        if has(prefs.feedback_ports, info.src_port) then return feedback, false end
      end

      function apns.dissector(bytes, info, tree)
        if bytes:len() == 0 then return 0 end
        local service, is_client = role(info)
        if service == gateway and is_client then return dissect(bytes, info, tree, frame_extent, show_frame) end
        if service == gateway then return dissect(bytes, info, tree, response_extent, show_response) end
        if service == feedback and not is_client then return dissect(bytes, info, tree, tuple_extent, show_tuple) end
        return 0
      end

      -- On TCP: TLS, or the protocol itself. A record of TLS begins with its type, 20 to 23, and the version 3.x, as no
      -- frame, response or tuple does.
      local outer = Proto("apns_tcp", "APNs over TCP")
      local tls = Dissector.get("tls")
      function outer.dissector(bytes, info, tree)
        if bytes:len() == 0 then return 0 end
        local stream, first = tcp_stream().value, bytes(0, 1):uint()
        local is_tls = first >= 20 and first <= 23 and (bytes:len() < 2 or bytes(1, 1):uint() == 3)
        if is_tls then secured[stream] = true end
        if secured[stream] then return tls:call(bytes, info, tree) end
        return apns.dissector(bytes, info, tree)
      end

      -- On other ports the first bytes decide: a notification with an item or with JSON, or a tuple of a usual token.
      local function begins_frame(bytes)
        if bytes:len() < items_at then return false end
        local command = bytes(0, 1):uint()
        if command == 2 then
          local length = bytes(frame_length_at, 4):uint()
          return bytes:len() >= items_at + item_header and items[bytes(items_at, 1):uint()] and length <= longest_frame
            and bytes(items_at + 1, 2):uint() + item_header <= length
        end
        local at = token_length_at[command]
        if not at or bytes:len() < at + 2 then return false end
        local payload_at = at + 2 + bytes(at, 2):uint() + 2
        return bytes:len() > payload_at and bytes(payload_at, 1):uint() == 0x7b
      end
      local function begins_tuple(bytes)
        if bytes:len() < tuple_header then return false end
        local time = bytes(0, 4):uint()
        return time >= earliest and time <= latest and bytes(4, 2):uint() == usual_token
      end
      local function claim(bytes, info, tree)
        local stream = tcp_stream().value
        if not clients[stream] then
          if begins_frame(bytes) then
            clients[stream], services[stream] = info.src_port, gateway
          elseif begins_tuple(bytes) then
            clients[stream], services[stream] = info.dst_port, feedback
          else
            return false
          end
        end
        apns.dissector(bytes, info, tree)
        return true
      end
      apns:register_heuristic("tls", claim)
      apns:register_heuristic("tcp", function(bytes, info, tree)
        if not claim(bytes, info, tree) then return false end
        -- Within TLS this would be the dissector of TLS.
        info.conversation = apns
        return true
      end)

      -- Ports come and go with the preferences.
      local tcp_ports, tls_ports = DissectorTable.get("tcp.port"), DissectorTable.get("tls.port")
      local added = {}
      local function add_ports()
        for _, range in ipairs(added) do
          tcp_ports:remove(range, outer)
          tls_ports:remove(range, apns)
        end
        added = { apns.prefs.gateway_ports, apns.prefs.feedback_ports }
        for _, range in ipairs(added) do
          tcp_ports:add(range, outer)
          tls_ports:add(range, apns)
        end
      end
      add_ports()
      apns.prefs_changed = add_ports

      """
  }

  // MARK: tables

  private static var commands: [(Int, String)] {
    [BinaryCommand.simple, .enhanced, .framed].map { (Int($0.rawValue), name($0)) }
      + [(Int(ErrorResponse.documentedCommand), "error response")]
  }

  private static func name(_ command: BinaryCommand) -> String {
    switch command {
    case .simple: "simple"
    case .enhanced: "enhanced"
    case .framed: "items"
    default: "unknown"
    }
  }

  private static var items: [(id: FrameItem.Identifier, name: String)] {
    FrameItem.Identifier.documented.map { ($0, $0.name) }
  }

  /// Only of items that cannot have another length.
  private static var itemLengths: [(Int, Int)] {
    FrameItem.Identifier.documented.compactMap { id in
      let lengths = (0...8).filter { id.canHave(length: $0) }
      return lengths.count == 1 ? (Int(id.rawValue), lengths[0]) : nil
    }
  }

  private static var tokenLengthOffsets: [(Int, Int)] {
    [BinaryCommand.simple, .enhanced].map {
      (Int($0.rawValue), Offsets.token(of: $0.rawValue) - Offsets.lengthField)
    }
  }

  private static var statuses: [(Int, String)] {
    (UInt8.min...UInt8.max).map(BinaryStatus.init).filter(\.isDocumented).map { (Int($0.rawValue), $0.description) }
  }

  // MARK: Lua

  private static func table(_ entries: [(Int, String)]) -> String {
    "{ " + entries.map { "[\($0.0)] = \"\($0.1)\"" }.joined(separator: ", ") + " }"
  }

  private static func table(_ entries: [(Int, Int)]) -> String {
    "{ " + entries.map { "[\($0.0)] = \($0.1)" }.joined(separator: ", ") + " }"
  }

  private static func ports(_ ports: [UInt16]) -> String { ports.map(String.init).joined(separator: ",") }
}
